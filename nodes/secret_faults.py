"""Where a plan puts secrets: each must be there, and stand in an argument that its tool keeps secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plans.faults import Fault
from plans.lint_scope import fault
from plans.placeholders import placeholders_in
from plans.plan import StepDraft
from plans.references import Reference, UnresolvedReference, follow, located
from plans.values import JSON
from plans.wording import listed, nearest
from tools.tool import Tool
from tools.vault import BY_NAME


def secret_faults(
    steps: Sequence[StepDraft], tools: Mapping[str, Tool], named: Mapping[str, Mapping[str, JSON]]
) -> Iterator[Fault]:
    """Every misplaced secret, and every one that nobody knows. `named` are the run's `inputs` and `secrets`, by name
    and as they stand in the journal."""
    for position, step in enumerate(steps):
        tool = tools.get(step.tool or "")
        for path, is_whole, reference in located(step.args):
            at, place = (position, step), ("args", *path)
            if (unknown := _unknown(reference, named["secrets"])) is not None:
                yield fault("UNKNOWN_REFERENCE", f"there is no secret {unknown[0]!r}", at, place, fix=unknown[1])
            elif is_whole and tool and path[0] not in tool.secret_args and _is_secret(reference, named):
                message = f"{tool.name} does not keep {path[0]!r} secret, so that {reference} cannot stand there"
                kept = f"arguments that it keeps secret: {listed(sorted(tool.secret_args)) or 'none'}"
                yield fault("INVALID_ARGS", message, at, place, fix=kept)


def _unknown(reference: Reference, known: Mapping[str, JSON]) -> tuple[str, str] | None:
    """A secret that is not there, and what was meant."""
    name = reference.path.removeprefix(".")
    if reference.name != "secrets" or name in known:
        return None
    close = nearest(name, known)
    return (
        name,
        f"did you mean ${{secrets.{close}}}?" if close else f"the secrets are {listed(sorted(known)) or 'none'}",
    )


def _is_secret(reference: Reference, named: Mapping[str, Mapping[str, JSON]]) -> bool:
    if reference.name not in ("inputs", "secrets"):
        return False
    try:
        value = follow(reference, named.__getitem__)
    except UnresolvedReference:
        return False
    return any(each.startswith(BY_NAME) for each in placeholders_in(value))
