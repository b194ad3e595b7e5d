"""What the user's words in answer to a question become: the result of the step that has asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.recording import criterion_failure, outcome_body
from nodes.step_run import base_id
from plans.clarification import NoAnswer, Question
from plans.errors import MalformedDecision

if TYPE_CHECKING:
    from nodes.session import Session
    from plans.decisions import ApprovalRequest, Respond


def check_answer(request: ApprovalRequest, decision: Respond) -> None:
    """Raise MalformedDecision, which says what would be one, for words that do not answer what the user was asked."""
    try:
        Question.of(request.args).answer(decision.message)
    except NoAnswer as error:
        raise MalformedDecision(str(error)) from None


async def answer_row(session: Session, request: ApprovalRequest, decision: Respond) -> tuple[dict[str, Any], Any]:
    """What the row of a decision says of an answer: the step's result, and the artifact that travels with it. Nothing
    where it is none, or the step's own criterion is false of it: then the step asks again."""
    unit, step = request.step_id, session.step(base_id(request.step_id))
    try:
        value = {"answer": Question.of(request.args).answer(decision.message)}
    except NoAnswer:  # it was stored by somebody who does not check
        return {}, None
    if criterion_failure(session, unit, step, value) is not None:
        return {}, None
    output, carried = await outcome_body(session, unit, value, started=session.clock.monotonic(), by_person=True)
    return {"answer": output}, carried
