"""A question to the user: asked by a step, or by a planner that cannot plan yet; the answer is the step's result.

A model that has to know something before it can plan writes a plan of nothing but questions. They run like any steps;
once they are answered the goal is planned anew around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.answers import by_default
from nodes.asking import decided_by_default, record_request
from nodes.recording import record_verdict
from nodes.state import Verdict
from plans.clarification import Question
from plans.faults import Fault
from plans.plan import MODEL_SOURCES, StepDraft
from tools.person import ASK_USER, asks_user

if TYPE_CHECKING:
    from nodes.admit import Run
    from nodes.session import Session
    from tools.tool import Tool

MOST_ROUNDS = 3
"""How often a planner may ask instead of planning, in one run."""


async def ask_user(session: Session, unit: str, admitted: Run) -> None:
    """The step waits for the user, and holds up only what depends on it."""
    question = Question.of(admitted.args)
    request = await record_request(session, unit, "clarification", ASK_USER, admitted.args, "low", question.text)
    session.scheduling().park(unit)
    await decided_by_default(session, request)


def only_asks(steps: Sequence[StepDraft], tools: Mapping[str, Tool]) -> bool:
    """Whether these steps do nothing but ask the user."""
    return bool(steps) and all(step.action == "tool" and asks_user(tools.get(step.tool or "")) for step in steps)


async def plan_with_answers(session: Session) -> bool:
    """Where a planner has asked instead of planning and has its answers: have the goal planned with them."""
    plan, fold = session.fold.plan, session.fold
    if plan is None or plan.source not in MODEL_SOURCES or plan.answer is not None or session.engine.planner is None:
        return False
    answered = all(fold.status(step.id) == "done" for step in plan.steps)
    if not answered or not only_asks(plan.steps, session.engine.registry):
        return False
    verdict = Verdict(
        verdict="global_replan", step_id="", attempt=-fold.rounds - 1, code="ANSWERED",
        reason="the user has answered what the plan has to know", counted=False,
    )  # fmt: skip
    await record_verdict(session, verdict)
    return True


def may_not_ask(session: Session) -> str | None:
    """Why a model's plan may not ask the user now; None where it may."""
    if session.approve != "ask":
        return f"this run asks nobody ({by_default(session.approve)})"
    if session.fold.rounds >= MOST_ROUNDS:
        return f"the user was asked {session.fold.rounds} times already; plan with what is known"
    return None


def not_to_ask(session: Session, new: Iterable[StepDraft], tools: Mapping[str, Tool]) -> list[Fault]:
    """Faults of new steps that ask the user where a model's plan may not."""
    why = may_not_ask(session)
    return [
        Fault(code="TOOL_UNAVAILABLE", step=step.id, path="tool", message=why, fix="leave the question out")
        for step in new
        if why is not None and asks_user(tools.get(step.tool or ""))
    ]
