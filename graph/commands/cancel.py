"""`surestep cancel`: ends a run, wherever it is driven, and says how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from graph.commands.printing import print_json, say
from graph.commands.shared import OVER, opened, waited

if TYPE_CHECKING:
    from graph.result import RunResult
    from nodes.events import Event


def cancel_thread(thread: str, *, as_json: bool) -> NoReturn:
    """Ask for the end, wait for it, and end with the run's exit code: 5 where it was cancelled."""
    opening = opened([])

    async def work() -> tuple[str, RunResult]:
        async with opening as agent:
            before = await agent.show(thread)
            return before.status, await agent.cancel(thread, on_event=_tell)

    before, result = waited(work)
    if before in OVER:
        say(f"the run on thread {thread} had ended before ({before}); nothing was changed")
    if as_json:
        print_json(result.as_json())
    else:
        from graph.commands.ending import show_end

        show_end(result)
    raise SystemExit(result.exit_code)


def _tell(event: Event) -> None:
    if event.kind == "notice" and event.message:
        say(event.message)
