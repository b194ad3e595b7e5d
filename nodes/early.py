"""Reads that begin while the planner still writes: steps of a prefix of its plan that is valid already.

Nothing of a revision runs before it is stored, so that a read which begins early is no step's: it is a call of the run,
counted by a row of its own, whose result is kept in this process. When the plan is stored and a step that is byte for
byte the same asks to start with the same arguments, the result becomes its outcome, written down as any other; whatever
else has begun is thrown away. A crash loses what was kept, and the steps are read as if nothing had begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodes.admit import Facts, Run, admit
from nodes.calling import Attempt, read_early, succeeded
from nodes.events import Event
from nodes.tools_now import current_tool
from plans.expressions import InvalidExpression, holds
from plans.plan import Step
from plans.values import JSON
from tools.outcome import Success

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.tool import Tool

KEPT_S = 60.0
"""How old the result of an early read may be when its step asks to start, in seconds: as long as a question to a
planner may take."""


@dataclass(frozen=True, slots=True)
class Early:
    """What an early read gave."""

    tool: Tool
    args: dict[str, JSON]
    outcome: Success
    began: float
    ended: float


@dataclass(slots=True)
class EarlyReads:
    """Those of one session, by step: what each was begun as, and its work."""

    steps: dict[str, Step]
    tasks: dict[str, asyncio.Task[Early | None]]

    def __init__(self) -> None:
        self.steps, self.tasks = {}, {}

    def begin(self, session: Session, step: Step, room: asyncio.Semaphore) -> None:
        """Read for this step, once the reads that it rests on are there."""
        self.steps[step.id] = step
        work = _read(session, step, room, [self.tasks[name] for name in step.depends_on])
        self.tasks[step.id] = asyncio.create_task(work, name=f"{session.head_run_id} {step.id} early")
        self.tasks[step.id].add_done_callback(_seen)

    def drop(self, wanted: Callable[[Step], bool] = lambda _: False) -> list[str]:
        """Throw away what is not wanted; the names of the steps it was begun for."""
        dropped = [name for name, step in self.steps.items() if not wanted(step)]
        for name in dropped:
            del self.steps[name]
            self.tasks.pop(name).cancel()
        return dropped

    def drop_step(self, step_id: str) -> None:
        """Throw away what was begun for one step."""
        self.drop(lambda step: step.id != step_id)

    async def stop(self) -> None:
        """Throw everything away; returns when nothing runs any more."""
        left = list(self.tasks.values())
        self.drop()
        if left:
            await asyncio.wait(left)


def _seen(task: asyncio.Task[Early | None]) -> None:
    """An early read that breaks is as if it had never been: its step runs into the same, and says so."""
    if not task.cancelled():
        task.exception()


def settle(session: Session) -> None:
    """A draft has become the plan, or was refused: what has begun for steps that the plan does not have so is thrown
    away."""
    now = {step.id: step for step in session.fold.plan.steps} if session.fold.plan is not None else {}
    dropped = session.early.drop(lambda step: now.get(step.id) == step)
    if dropped:
        said = f"begun early and not used, because the plan came out otherwise: {', '.join(dropped)}"
        session.emit(Event(kind="notice", message=said))


async def answered_early(session: Session, unit: str, step: Step, admitted: Run) -> bool:
    """Give a step run the result that was read early for it, if there is one."""
    if session.early.steps.get(unit) != step:
        return False
    task = session.early.tasks[unit]
    await asyncio.wait({task})
    session.early.drop_step(unit)
    early = None if task.cancelled() or task.exception() is not None else task.result()
    now, number = session.clock.monotonic(), session.fold.run(unit).attempt + 1
    if early is None or number > 1 or early.args != admitted.args or now - early.ended > KEPT_S:
        return False
    attempt = Attempt(unit, step, early.tool, admitted.args, admitted.key, number)
    started = now - (early.ended - early.began)
    await succeeded(session, attempt, replace(early.outcome, called=False), started)
    return True


async def _read(
    session: Session, step: Step, room: asyncio.Semaphore, before: list[asyncio.Task[Early | None]]
) -> Early | None:
    """The result of a step that only reads; None where it may not start, or gave none that could be used."""
    named: dict[str, JSON] = {"inputs": session.head.input_values(), "secrets": session.engine.secret_names}
    if before:
        await asyncio.wait(before)
    for name, task in zip(step.depends_on, before, strict=True):
        given = None if task.cancelled() or task.exception() is not None else task.result()
        if given is None:
            return None
        named[name] = given.outcome.value
    async with room:
        return await _called(session, step, named)


async def _called(session: Session, step: Step, named: dict[str, JSON]) -> Early | None:
    tool = await current_tool(session, step.tool or "")
    facts = Facts(step.id, named, tool=tool, role=session.head.role, elapsed_s=session.elapsed_s())
    admitted = admit(step, session.fold, facts)
    if tool is None or tool.effect != "read" or not isinstance(admitted, Run) or session.cancelled:
        return None
    began = session.clock.monotonic()
    attempt = Attempt(step.id, step, tool, admitted.args, admitted.key, 1)
    outcome = await read_early(session, attempt, admitted.call)
    if outcome is None or outcome.degraded is not None or not _succeeded(step, outcome.value):
        return None
    ended = session.clock.monotonic()
    message = f"{step.id} {tool.name}: read while the plan is being written"
    session.emit(Event(kind="notice", step_id=step.id, tool=tool.name, message=message, elapsed_s=ended - began))
    return Early(tool, admitted.args, outcome, began, ended)


def _succeeded(step: Step, value: JSON) -> bool:
    """Whether a result is what the step's own criterion asks for."""
    try:
        return step.success_when is None or holds(step.success_when, value)
    except InvalidExpression:
        return False
