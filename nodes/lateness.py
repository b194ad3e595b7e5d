"""What comes back after its call was given up: noted, and where it is the only word about an effect, believed.

A thread that was left alone at its deadline may end well a moment later. While this process still owns the run, that
is knowledge: the effect has happened, with this result; or, if it failed so that nothing can have come of it, it has
not. It settles a step that is in doubt, unless somebody has decided first. Whatever was told to stop, and then said
something, is noted and not believed: what it says may be the doing of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodes.events import Event
from nodes.recording import announce, criterion_failure, outcome_body, without_secrets
from plans.decisions import ApprovalRequest
from plans.failure import Failure
from tools.outcome import Late, Success

if TYPE_CHECKING:
    from nodes.calling import Attempt
    from nodes.session import Session


@dataclass
class LateAnswers:
    """Those of one session. `deciding` is held by whoever makes something of an unknown outcome: a verdict with its
    question to a person, or a late answer; the two never meet in the middle."""

    deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _listening: bool = True
    _taking: set[asyncio.Task[None]] = field(default_factory=set)

    def heard_by(self, session: Session, attempt: Attempt) -> Callable[[Late], None]:
        """Whom to tell of a late answer to this attempt. Nothing is taken once the run is about to be let go."""

        def hear(late: Late) -> None:
            if self._listening:
                task = asyncio.create_task(_take(session, attempt, late), name=f"{attempt.unit} late")
                self._taking.add(task)
                task.add_done_callback(self._taken)

        return hear

    def _taken(self, task: asyncio.Task[None]) -> None:
        self._taking.discard(task)
        if not task.cancelled():
            task.exception()  # a journal that refuses the row has stopped the run, which tells of it by itself

    async def stop(self) -> None:
        """Take nothing more; returns when what was being taken is."""
        self._listening = False
        while self._taking:
            await asyncio.wait(self._taking)

    def listen(self) -> None:
        """The run goes on after all."""
        self._listening = True


async def _take(session: Session, attempt: Attempt, late: Late) -> None:
    """Write it down once the attempt's own end is, and nobody is at the step."""
    while (task := session.scheduling().tasks.get(attempt.unit)) is not None:
        await asyncio.wait({task})
        await asyncio.sleep(0)  # for the scheduler to see that it has ended
    async with session.late.deciding:
        body, carried = await _body(session, attempt, late)
        if _may_settle(session, attempt, late) and await _withdrawn(session, attempt.unit, body):
            # Nothing is awaited between the last look and this row.
            body["settles"] = _may_settle(session, attempt, late)
        await session.record("late", attempt.unit, attempt.number, body=body, artifact=carried)
    _tell(session, attempt, body)


async def _body(session: Session, attempt: Attempt, late: Late) -> tuple[dict[str, Any], Any]:
    """The row's body, and the small artifact that travels with it."""
    about: dict[str, Any] = {"late_s": round(late.late_s, 3), "tool": attempt.tool.name}
    if isinstance(late.outcome, Success) and not _is_in_doubt(session, attempt.unit):
        output, carried = await session.results.store(late.outcome.value)
        return {"output": output.as_stored(), **about}, carried
    if isinstance(late.outcome, Success):
        started = session.clock.monotonic()
        body, carried = await outcome_body(
            session, attempt.unit, late.outcome.value, started=started, degraded=attempt.degraded
        )
        return {**body, **about}, carried
    failure, carried = await without_secrets(session, late.outcome.failure, late.outcome.raw)
    named = {"step_id": attempt.unit, "tool": attempt.tool.name, "attempt": attempt.number}
    return {"failure": failure.model_copy(update=named).model_dump(exclude_none=True), **about}, carried


def _is_in_doubt(session: Session, unit: str) -> bool:
    """Of other steps the plan may know nothing any more."""
    run = session.fold.steps.get(unit)
    return run is not None and run.in_doubt is not None


def _may_settle(session: Session, attempt: Attempt, late: Late) -> bool:
    """Whether the step is still in doubt about just this attempt, and what came back says for certain what became of
    it. A result that is no success by the step's own criterion is a person's to judge."""
    run = session.fold.steps.get(attempt.unit)
    if run is None or run.in_doubt is None or run.failure is None or session.fold.finished is not None:
        return False
    if attempt.unit in session.scheduling().tasks or late.disturbed:
        return False
    if run.failure.code != "UNKNOWN_OUTCOME" or (run.attempt, run.in_doubt["key"]) != (attempt.number, attempt.key):
        return False
    if isinstance(late.outcome, Success):
        return criterion_failure(session, attempt.unit, attempt.step, late.outcome.value) is None
    return late.outcome.called and not late.outcome.in_doubt


async def _withdrawn(session: Session, unit: str, body: dict[str, Any]) -> bool:
    """Take back what a person is asked about this step; False where somebody has decided already. A decision and this
    meet on the question's row in the table, where the first one wins."""
    asked = _questions(session, unit)
    ids = [request.approval_id for request in asked]
    if not ids:
        return True
    gone = await session.engine.approvals.withdraw_as_owner(session.head_run_id, session.lease.fence, ids)
    body["approval_ids"] = gone
    return set(gone) == set(ids)


def _questions(session: Session, unit: str) -> Sequence[ApprovalRequest]:
    return [request for request in session.fold.asked.values() if request.step_id == unit]


def _tell(session: Session, attempt: Attempt, body: dict[str, Any]) -> None:
    session.emit(
        Event(kind="notice", step_id=attempt.unit, tool=attempt.tool.name, message=said_of(attempt.unit, body))
    )
    if body.get("settles"):
        announce(session, attempt.unit, attempt.step)
        session.scheduling().moved(attempt.unit)


def said_of(unit: str, body: dict[str, Any]) -> str:
    """A late answer in a sentence, from its row."""
    failure = Failure.model_validate(body["failure"]) if "failure" in body else None
    end = f"failed with {failure.code}" if failure else "ended well"
    settled = ""
    if body.get("settles"):
        settled = "; so it has not happened" if failure else "; so it has happened, and this is its result"
    return f"{body['tool']} of step {unit} {end} {body['late_s']:.1f} s after it was given up{settled}"
