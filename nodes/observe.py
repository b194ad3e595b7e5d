"""observe: one verdict per outcome, and the edge of the most severe. The others stay queued until it is their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.acting import principal_of
from nodes.asking import record_request
from nodes.events import Event
from nodes.inbox import instruction_id, new_instruction, taken
from nodes.instructions import take_instructions, told
from nodes.ladder import planning_for
from nodes.means import standing_of
from nodes.questions import open_ticket
from nodes.recording import record_verdict
from nodes.sealing import hidden_messages, sealed_text
from nodes.state import AgentState, Planning, Verdict
from nodes.stopping import within_limits
from nodes.verdicts import decide, most_severe

if TYPE_CHECKING:
    from nodes.session import Session

LONG_WAIT_S = 5.0
"""From here on a wait is told: the step's own backoff never is that long."""


async def observe(state: AgentState, session: Session) -> dict[str, Any]:
    """Decide about every outcome that has no verdict, then take the most severe verdict that waits."""
    update = await _instruction(state, session)
    if session.cancelled:  # nothing is mended any more
        return {**update, "edge": "next"}
    decided = [verdict for unit in list(session.fold.undecided) if (verdict := await _decide(session, unit))]
    top = most_severe(session.fold.queue)
    if top is None:
        retried = any(verdict.verdict == "retry" for verdict in decided)
        return {**update, **({"edge": "retry"} if retried else _subgoal(session))}
    if top.verdict in ("local_replan", "global_replan"):
        update["planning"] = planning_for(top)
        if session.fold.plan is not None:  # else they are those of the drafts that an instruction is to better
            update["faults"] = []
    return {**update, "edge": top.verdict}


def _subgoal(session: Session) -> dict[str, Any]:
    """The first of the sub-goals that wait for their plan goes to whoever plans anew; without one nothing is left."""
    if not session.fold.reached:
        return {"edge": "next"}
    planning = Planning(purpose="subgoal", step_id=next(iter(session.fold.reached)))
    return {"planning": planning, "faults": [], "edge": "global_replan"}


async def _instruction(state: AgentState, session: Session) -> dict[str, Any]:
    """A message that came while the run is open: the rest of the plan is written anew around what is finished."""
    await take_instructions(session)
    text = new_instruction(state)
    if text is None:
        return {}
    text = await sealed_text(session.engine, session.head_run_id, text)
    await told(session, instruction_id(state, text), text, principal_of(session.engine, session.config))
    return {**taken(state), **hidden_messages(session.engine, state)}


async def _decide(session: Session, unit: str) -> Verdict | None:
    """The verdict; none where an answer that came late has settled the step meanwhile."""
    async with session.late.deciding:
        return await _decided(session, unit) if unit in session.fold.undecided else None


async def _decided(session: Session, unit: str) -> Verdict:
    run = session.fold.run(unit)
    if run.failure is None:
        raise AssertionError(f"{unit} is undecided and has no failure")
    verdict = decide(run.failure, standing_of(session, unit, run.failure), now=session.clock.wall())
    verdict = await within_limits(session, verdict)
    if verdict.verdict == "ask" and run.failure.class_ != "unknown":
        await open_ticket(session, unit, run.failure)
    elif verdict.verdict == "ask":  # asked first: a verdict without its question would wait for nobody
        intent = run.in_doubt or {}
        args, tool = intent.get("args", {}), intent.get("tool", "")
        await record_request(session, unit, "unknown_outcome", tool, args, "high", run.failure.message)
    await record_verdict(session, verdict, unit)
    _say_the_wait(session, verdict)
    if verdict.verdict in ("retry", "next", "finish"):
        session.scheduling().moved(unit)
    return verdict


def _say_the_wait(session: Session, verdict: Verdict) -> None:
    """A step that waits longer than anybody would expect says how long, and for what."""
    wait_s = (verdict.not_before or 0.0) - session.clock.wall()
    if wait_s >= LONG_WAIT_S:
        message = f"{verdict.step_id} is tried again in {wait_s:.0f} s: {verdict.reason}"
        session.emit(Event(kind="notice", step_id=verdict.step_id, message=message))
