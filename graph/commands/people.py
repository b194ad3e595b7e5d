"""`approvals`, `approve` and `reject`: what waits for a person, and what a person says to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from graph.commands.asking import ASKED_FOR, answers, go_on, has_expired, request_text
from graph.commands.printing import print_json, say, show
from graph.commands.reading import read_text
from graph.commands.run import Drive, end
from graph.commands.shared import opened, waited
from nodes.answers import ABOUT_A_PLAN, ALLOWED
from plans.decisions import ABOUT_PLAN, ApprovalRequest, Approve, Decision, Edit, Reject, Respond
from plans.errors import InvalidInput
from plans.wording import in_utc

if TYPE_CHECKING:
    from checkpoints.approvals import Approval
    from graph.gateway import Agent
    from graph.result import RunResult
    from nodes.state import ApproveMode

Said = Approve | Reject | Edit | Respond
RECORDED = {"respond": "your answer about", "edit": "your change of"}
"""Decisions that are not said by their own name once they are recorded."""


def list_approvals(thread: str | None, toolkits: Sequence[str], *, as_json: bool) -> None:
    """What waits, with exactly what would run."""

    opening = opened(toolkits)

    async def work() -> list[Approval]:
        async with opening as agent:
            return await agent.engine.approvals.waiting(thread, agent.principal.tenant)

    waiting = waited(work)
    if as_json:
        votes = {each.request.approval_id: [vote.by.name for vote in each.votes] for each in waiting}
        requests = [each.request.model_dump(mode="json") for each in waiting]
        print_json({"approvals": [{**each, "agreed": votes[each["approval_id"]]} for each in requests]})
        return
    if not waiting:
        show("nothing waits for a person")
    for request, said in [(each.request, each.votes) for each in waiting]:
        since = f"thread {request.thread_id}, since {in_utc(request.created_at)}"
        show(since, request_text(request, said))
        ways = [go_on(request.thread_id, toolkits)] if has_expired(request) else answers(request, toolkits)
        for way in ways:
            show(f"  {way}")


def allowed(happened: str | None, answer: str | None, plan: Path | None) -> Decision:
    """What `approve` was told, and with what. Raises InvalidInput for two of them, PlanRejected with all faults."""
    if sum(said is not None for said in (happened, answer, plan)) > 1:
        raise InvalidInput("--happened, --answer and --plan say different things; give one of them")
    if plan is not None:
        from nodes.given import given_draft

        draft = given_draft(read_text(str(plan), "the plan"))
        return Edit(args=draft.model_dump(mode="json", exclude_defaults=True))
    said = happened if happened is not None else answer
    return Approve() if said is None else Respond(message=said)


def still_needed(asked: Approval) -> str:
    """What is added where more people have to agree."""
    more = asked.request.needed - asked.agreed
    return f"; {more} more of other people have to agree" if asked.status == "pending" and more > 0 else ""


def refuse_other_words(
    request: ApprovalRequest, decision: Decision, option: str | None, toolkits: Sequence[str]
) -> None:
    """Raise InvalidInput, with the commands that answer it, if the request asks for something else than was given: a
    remark in words is never taken for the result of what may have happened, nor the other way round."""
    other = {"--happened": request.kind in ASKED_FOR, "--plan": request.kind not in ABOUT_A_PLAN}
    other["--answer"] = request.kind not in ASKED_FOR
    if decision.type in ALLOWED[request.kind] and not other.get(option or "", False):
        return
    ways = "\n  ".join(answers(request, toolkits))
    raise InvalidInput(f"{option or decision.type} is no answer to what {request.step_id} asks; answer with:\n  {ways}")


def _made_of(waiting: ApprovalRequest | None, make: Callable[[ApprovalRequest], Decision]) -> Decision:
    """The decision; about what does not wait one that cannot count, so that it is told what became of the question."""
    return make(waiting) if waiting is not None else Edit(args={})


def decide(
    thread: str,
    step: str,
    given: Decision | Callable[[ApprovalRequest], Decision],
    toolkits: Sequence[str],
    approve: ApproveMode,
    *,
    option: str | None = None,
    as_json: bool,
) -> NoReturn:
    """Record the decision, which was given with `option`, or is made of what waits, then go on with the run."""
    drive = Drive(thread, toolkits, approve, as_json=as_json)

    async def start(agent: Agent) -> RunResult:
        waiting = next((each for each in await agent.approvals(thread) if each.step_id == step), None)
        decision = given if isinstance(given, Said) else _made_of(waiting, given)
        if waiting is not None:
            refuse_other_words(waiting, decision, option, toolkits)
        asked = await agent.decide(thread, step, decision, via="command line")
        request = asked.request
        about = f"{request.tool} of step {request.step_id}" if request.step_id != ABOUT_PLAN else "the plan"
        say(f"recorded: {RECORDED.get(decision.type, decision.type)} {about}{still_needed(asked)}")
        return await drive.resumed(agent)

    end(drive, start)
