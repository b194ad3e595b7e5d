"""Where a plan puts secrets: each must be there, and stand in an argument that its tool keeps secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plans.faults import Fault
from plans.lint_scope import fault
from plans.placeholders import placeholders_in, places_of
from plans.plan import StepDraft
from plans.references import Reference, UnresolvedReference, follow, located
from plans.values import JSON, Path
from plans.wording import listed, nearest
from tools.tool import Tool
from tools.vault import is_by_name, misplaced


def secret_faults(
    steps: Sequence[StepDraft], tools: Mapping[str, Tool], named: Mapping[str, Mapping[str, JSON]]
) -> Iterator[Fault]:
    """Every misplaced secret, and every one that nobody knows. `named` are the run's `inputs` and `secrets`, by name
    and as they stand in the journal."""
    for position, step in enumerate(steps):
        tool = tools.get(step.tool or "")
        at = (position, step)
        for path, _, reference in located(step.args):
            if (unknown := _unknown(reference, named["secrets"])) is not None:
                yield fault(
                    "UNKNOWN_REFERENCE", f"there is no secret {unknown[0]!r}", at, ("args", *path), fix=unknown[1]
                )
            elif tool and path[0] not in tool.secret_args and _is_secret(reference, named):
                yield _misplaced(tool, path, str(reference), at)
        for path in places_of(dict(step.args)):
            if tool and path[0] in misplaced(step.args, tool.secret_args):
                yield _misplaced(tool, path, "the placeholder of a secret", at)


def _misplaced(tool: Tool, path: Path, what: str, at: tuple[int, StepDraft]) -> Fault:
    message = f"{tool.name} does not keep {path[0]!r} secret, so that {what} cannot stand there"
    kept = f"arguments that it keeps secret: {listed(sorted(tool.secret_args)) or 'none'}"
    return fault("INVALID_ARGS", message, at, ("args", *path), fix=kept)


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
    return any(map(is_by_name, placeholders_in(value)))
