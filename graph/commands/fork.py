"""`surestep fork`: a new run from a step of another, driven, asked about and ended like any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from graph.commands.reading import values
from graph.commands.run import Drive, end
from nodes.ids import new_id

if TYPE_CHECKING:
    from graph.gateway import Agent
    from graph.result import RunResult
    from nodes.state import ApproveMode


@dataclass(frozen=True)
class ForkWish:
    """What was asked for, as it was written."""

    thread: str
    step: str
    new_thread: str | None
    request_id: str | None
    approve: ApproveMode
    limits: Sequence[str]


def fork_thread(wish: ForkWish, toolkits: Sequence[str], *, as_json: bool) -> NoReturn:
    """Make the fork, drive it, and end with its exit code."""
    limits = values(wish.limits, "--limit")
    thread = wish.new_thread if wish.new_thread is not None else new_id()
    drive = Drive(thread, toolkits, wish.approve, as_json=as_json)

    async def start(agent: Agent) -> RunResult:
        return await agent.fork(
            wish.thread,
            wish.step,
            new_thread_id=thread,
            request_id=wish.request_id,
            limits=limits,
            on_event=drive.watch.take,
            approve=wish.approve,
        )

    end(drive, start)
