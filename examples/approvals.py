"""A step of high risk waits for a person; this program answers for them: `python examples/approvals.py`."""

from __future__ import annotations

import asyncio

from graph.agent import open_agent
from plans.decisions import Approve, Decision, Reject
from plans.plan import Plan, Step
from tools.registry import ToolContext, Toolkit

bank = Toolkit("bank")


@bank.tool(effect="idempotent", risk="high")
async def transfer(account: str, amount: int, ctx: ToolContext) -> dict[str, str | int]:
    """Transfer an amount; the bank honours the key, so that a repeated call moves the money once."""
    return {"account": account, "amount": amount, "reference": ctx.idempotency_key[:8]}


PLAN = Plan(
    plan_id="payday",
    goal="pay two people",
    steps=(
        Step(id="ann", tool="transfer", args={"account": "ann", "amount": 20}),
        Step(id="bob", tool="transfer", args={"account": "bob", "amount": 2_000}, on_dependency_failure="skip"),
    ),
)


async def main() -> None:
    """Approve what is small, reject what is not, and print what came of each step."""
    async with open_agent(toolkits=[bank]) as agent:
        result = await agent.run(plan=PLAN)
        decisions: dict[str, Decision] = {}
        for request in result.approvals:
            small = request.args["amount"] <= 100
            decisions[request.approval_id] = Approve() if small else Reject(message="too much")
        result = await agent.resume(result.thread_id, decisions=decisions)
        for step in result.steps:
            print(step.id, step.status, "-", step.failure.message if step.failure else "paid")


asyncio.run(main())
