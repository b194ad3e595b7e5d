"""What a person says to a run that goes on: the answer to its one open question, or an instruction to plan anew.

It comes by the inbox of the thread (a message in the graph's input) or by the mailbox of the run (library, command
line, whoever does not drive it). Either way it is a row of the journal before anything else happens, and nothing new
starts until that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.answers import check_decision, take_decisions
from nodes.events import Event
from nodes.recording import record_verdict
from nodes.state import Verdict
from plans.decisions import Respond
from plans.errors import ApprovalConflict

if TYPE_CHECKING:
    from nodes.session import Session
    from plans.principals import Principal


async def look_for_instructions(session: Session) -> None:
    """Find out whether something was said to the run while nobody here has listened."""
    if not session.lease.told.is_set() and await session.engine.instructions.waiting(session.head_run_id):
        session.lease.told.set()


async def take_instructions(session: Session) -> None:
    """Take what was said to the run since it was last looked for."""
    if not session.lease.told.is_set():
        return
    session.lease.told.clear()
    waiting = await session.engine.instructions.waiting(session.head_run_id)
    for each in waiting:
        await told(session, each.instruction_id, each.message, each.said_by)
    if waiting:
        await session.flush()  # it is taken only once it stands here
        await session.engine.instructions.taken(session.head_run_id, [each.instruction_id for each in waiting])


async def told(session: Session, named: str, text: str, by: Principal) -> None:
    """Take one thing that was said. `named` is the id of its sending: sent again, or found again after a crash, it is
    the same one."""
    if named in session.fold.instructions or await _is_answer(session, text, by):
        return
    if session.engine.planner is None:
        message = "a new instruction needs a model; set SURESTEP_MODEL. The run goes on."
        session.emit(Event(kind="notice", message=message))
        return
    number = len(session.fold.instructions) + 1
    verdict = Verdict(
        verdict="global_replan", step_id="", attempt=-number, code="NEW_INSTRUCTION", reason=text, counted=False
    )
    await record_verdict(session, verdict, instruction=named)


async def _is_answer(session: Session, text: str, by: Principal) -> bool:
    """Whether this answers what the user is asked: the one thing that waits for anybody, by a valid answer to it. In a
    chat nobody looks for the ids of questions."""
    asked = list(session.fold.asked.values())
    if len(asked) != 1 or asked[0].kind != "clarification":
        return False
    request, decision = asked[0], Respond(text)
    try:
        check_decision(request, decision, session.engine.registry)
        await session.engine.approvals.decide(
            request.approval_id, decision, by, via="message", args_sha256=request.args_sha256
        )
    except ApprovalConflict:
        return False
    await take_decisions(session)
    return True
