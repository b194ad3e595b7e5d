"""`approvals`, `approve`, `reject`, and the questions a run asks at a terminal."""

from __future__ import annotations

import getpass
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from graph.commands.run import resume_thread
from graph.commands.shared import console, opened, print_json, say, waited
from plans.decisions import ApprovalRequest, Approve, Decision, Reject

if TYPE_CHECKING:
    from graph.gateway import ApproveMode


def list_approvals(thread: str | None, toolkits: Sequence[str], *, as_json: bool) -> None:
    """What waits, with exactly what would run."""

    async def work() -> list[ApprovalRequest]:
        async with opened(toolkits) as agent:
            return await agent.approvals(thread)

    waiting = waited(work)
    if as_json:
        print_json({"approvals": [request.model_dump(mode="json") for request in waiting]})
        return
    out = console()
    if not waiting:
        out.print("nothing waits for a person")
    for request in waiting:
        show_request(request)
        out.print(f"  surestep approve {request.thread_id} {request.step_id}", style="dim", markup=False)


def show_request(request: ApprovalRequest) -> None:
    """One request as a person should see it before deciding."""
    out = console()
    out.print(f"{request.thread_id} {request.step_id}: {request.tool} (risk {request.risk})", markup=False)
    out.print(f"  why asked: {request.reason}", markup=False)
    out.print(f"  arguments: {json.dumps(request.args, ensure_ascii=False)}", markup=False, soft_wrap=True)


def decide(
    thread: str, step: str, decision: Decision, toolkits: Sequence[str], approve: ApproveMode, *, as_json: bool
) -> NoReturn:
    """Record the decision, then go on with the run."""

    async def work() -> ApprovalRequest:
        async with opened(toolkits) as agent:
            return await agent.decide(thread, step, decision, by=_who())

    request = waited(work)
    say(f"{decision.type}: {request.tool} of step {request.step_id}")
    resume_thread(thread, toolkits, approve, [], as_json=as_json)


def ask_at_terminal(requests: Sequence[ApprovalRequest]) -> dict[str, Decision]:
    """A decision for each request that the person answers now; what is left for later is not in it."""
    decisions: dict[str, Decision] = {}
    for request in requests:
        show_request(request)
        answer = input("  approve, reject or later? [a/r/l] ").strip().lower()
        if answer in ("a", "approve", "y", "yes"):
            decisions[request.approval_id] = Approve()
        elif answer in ("r", "reject", "n", "no"):
            decisions[request.approval_id] = Reject(message=input("  why? ").strip())
    return decisions


def _who() -> str:
    try:
        return f"command line: {getpass.getuser()}"
    except (KeyError, OSError):
        return "command line"
