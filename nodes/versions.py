"""What an older Surestep stored is read as today's; what a newer one stored is refused before anything changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nodes.state import STATE_VERSION, Drafted, Planning, RunHead
from plans.errors import Unreadable, VersionTooNew
from plans.limits import Usage
from plans.plan import Plan, PlanDraft
from plans.versions import PLAN_VERSIONS, PlanVersions
from plans.wording import kind_of

JOURNAL_VERSION = 2
"""Version of the journal's rows. 1: the first. 2: intents say until when they may start; large bodies are references;
results say no more than their reference does not; fallbacks have kinds; verdicts can be about a simplified plan, and
about a person's word; decisions carry verdicts; plans say their form, their template and what it promises. New kinds of
rows: version, policy, inherited, draft, older_form, early, late, reached, check, reservation, withdrawn,
resumed and limit. All
kinds: `docs/journal.md`."""

Body = Mapping[str, Any]

JOURNAL_UPGRADES: Mapping[int, Callable[[str, Body], Body]] = MappingProxyType({1: lambda _, body: body})
"""From each version of the journal to the next: a row's kind and body give its body. Never deleted: journals of every
version that was ever released can wait in somebody's database."""

STATE_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = MappingProxyType({})
"""The same for what LangGraph has checkpointed of a thread."""


def row_body(
    kind: str,
    body: Body,
    version: int,
    *,
    upgrades: Mapping[int, Callable[[str, Body], Body]] = JOURNAL_UPGRADES,
    newest: int = JOURNAL_VERSION,
) -> Body:
    """The body of a journal row that was written in this version, as the newest one has it."""
    for step in range(version, newest):
        body = upgrades[step](kind, body)
    return body


def journal_version(body: Body) -> int:
    """The version that a row says its followers have; the first one did not say it. Raises VersionTooNew."""
    version = int(body.get("journal_version", 1))
    if version > JOURNAL_VERSION:
        raise VersionTooNew(
            f"a newer Surestep has worked on this run: its journal has version {version}, and this one reads up to "
            f"{JOURNAL_VERSION}. Go on with the newer version; nothing was changed"
        )
    return version


def unknown_row(kind: str) -> VersionTooNew:
    """What is told of a kind of row that this code does not know: it is not passed over."""
    return VersionTooNew(
        f"the journal has a row of the kind {kind!r}, which this Surestep does not know; a newer one has written it. "
        "Go on with the newer version; nothing was changed"
    )


def not_ours(kind: str, place: int, error: Exception) -> Unreadable:
    """What is told of a row that no Surestep has written."""
    return Unreadable(
        f"row {place} of the run's journal, of the kind {kind!r}, is not as Surestep writes it "
        f"({type(error).__name__}); was it changed by hand? `surestep audit verify` tells what was"
    )


HELD: Mapping[str, type] = MappingProxyType(
    {
        "schema_version": int, "edge": str, "status": str, "run": RunHead, "current_plan": Plan, "planning": Planning,
        "drafted": Drafted, "usage": Usage, "counts": dict, "verdicts": list, "approvals": list, "faults": list,
        "failures": list, "messages": list,
    }
)  # fmt: skip
"""What stands in a channel, if anything does."""


def readable_state(
    state: Mapping[str, Any],
    *,
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = STATE_UPGRADES,
    newest: int = STATE_VERSION,
) -> dict[str, Any]:
    """The state of a thread as the newest version has it. Raises VersionTooNew for one from the future, Unreadable for
    one that no Surestep has written."""
    found = dict(state)
    for name, kind in HELD.items():
        if found.get(name) is not None and not isinstance(found[name], kind):
            raise Unreadable(
                f"the checkpoint of this thread holds {kind_of(found[name])} in the place of {name!r}, which no "
                "Surestep has written; what was finished is in the journal, and `surestep show` tells it"
            )
    version = int(found.get("schema_version") or newest)
    if version > newest:
        raise VersionTooNew(
            f"a newer Surestep has checkpointed this thread: its state has schema_version {version}, and this one "
            f"reads up to {newest}. Go on with the newer version; nothing was changed"
        )
    for step in range(version, newest):
        found = upgrades[step](found)
    return found


def stored_head(head: RunHead, versions: PlanVersions = PLAN_VERSIONS) -> dict[str, Any]:
    """A run's head as it is stored, with the plan that was given in a form that any worker can begin, if there is one:
    then the same request is the same whichever worker it comes to."""
    stored = head.model_dump(mode="json")
    return stored if head.given_plan is None else {**stored, "given_plan": stored_draft(head.given_plan, versions)}


def read_head(stored: Mapping[str, Any], versions: PlanVersions = PLAN_VERSIONS) -> RunHead:
    """A stored head. Raises VersionTooNew where its plan was given in a version that this code does not know."""
    given = stored.get("given_plan")
    return RunHead.model_validate({**stored, "given_plan": None if given is None else read_draft(given, versions)})


def stored_draft(draft: PlanDraft, versions: PlanVersions) -> dict[str, Any]:
    """A draft as it is stored: in the oldest version of the plan contract that can say it; the first one is not named,
    as there was no other once."""
    stored = versions.oldest(draft.model_dump(mode="json"))
    if stored["schema_version"] == 1:
        del stored["schema_version"]
    return stored


def read_draft(stored: Mapping[str, Any], versions: PlanVersions) -> PlanDraft:
    """A stored draft. Raises VersionTooNew for a version that this code does not know."""
    plan = versions.read({"plan": {"schema_version": 1, **stored}}).plan
    del plan["schema_version"]
    return PlanDraft.model_validate(plan)
