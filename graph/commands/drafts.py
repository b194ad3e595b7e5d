"""`show THREAD --plans`: who wrote a run's plans, how many tries they took, and what was wrong with the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from graph.commands.looking import show_table
from graph.commands.printing import print_json, write_bytes
from graph.commands.shared import opened, waited
from plans.errors import InvalidInput
from plans.wording import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graph.drafts import DraftResult

NAMES = ("#", "plan", "source", "model", "mode", "prompt", "template", "try", "tokens", "")


def show_drafts(thread: str, output: str | None, raw: str | None, *, as_json: bool) -> None:
    """Every draft of the thread's latest run, used or refused, in their order; or, by its number in that list, what a
    model has written."""
    if output is not None:
        raise InvalidInput("--output prints a step's result and --plans no step's; give one of them")
    opening = opened([], calls=False)

    async def work() -> list[DraftResult] | bytes:
        async with opening as agent:
            found = await agent.drafts(thread)
            if raw is None:
                return found
            draft = _numbered(found, raw)
            body = await agent.output(thread, draft.raw_ref or "")
            return body if draft.failed else json.loads(body).encode("utf-8", "replace")

    found = waited(work)
    if isinstance(found, bytes):
        write_bytes(found)
    elif as_json:
        print_json({"thread_id": thread, "drafts": [draft.model_dump(mode="json") for draft in found]})
    else:
        show_table(NAMES, [_row(number, draft) for number, draft in enumerate(found, 1)], "no plan yet")


def _numbered(drafts: Sequence[DraftResult], number: str) -> DraftResult:
    stored = {str(at): draft for at, draft in enumerate(drafts, 1) if draft.raw_ref}
    if number in stored:
        return stored[number]
    have = f"drafts that have one: {listed(stored)}" if stored else "no model has written a plan of this run"
    raise InvalidInput(f"there is no text of a model's for draft {number!r}; {have}")


def _row(number: int, draft: DraftResult) -> tuple[str, ...]:
    tokens = draft.prompt_tokens + draft.completion_tokens
    about = "about " * (draft.estimated_tokens > 0)
    return (
        str(number),
        f"revision {draft.revision}" if draft.valid else "refused",
        draft.source,
        draft.model or "",
        draft.mode or "",
        (draft.prompt_sha256 or "")[:8],
        draft.template or "",
        str(draft.attempt),
        f"{about}{tokens:,}" if tokens else "",
        _remark(draft),
    )


def _remark(draft: DraftResult) -> str:
    said = ["its syntax was repaired"] if draft.repaired else []
    said += [draft.failed] if draft.failed else []
    said += [f"{fault.code}{f' in {fault.step}' if fault.step else ''}: {fault.message}" for fault in draft.faults]
    return "; ".join([*said, *([f"and {draft.more_faults} more"] if draft.more_faults else [])])
