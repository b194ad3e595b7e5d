"""A goal planned by a model: set SURESTEP_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY, first."""

from __future__ import annotations

import asyncio

from graph.agent import open_agent
from tools.registry import Toolkit

numbers = Toolkit("numbers")


@numbers.tool(effect="read")
def double(number: int) -> dict[str, int]:
    """Twice a number."""
    return {"number": number * 2}


async def main() -> None:
    """Print the model's plan, then what it gives, and what it cost."""
    async with open_agent(toolkits=[numbers]) as agent:
        preview = await agent.plan("What is twice twenty-one?")
        print([f"{step.id}: {step.tool} {step.args}" for step in preview.plan.steps])
        result = await agent.run("What is twice twenty-one?")
        print(result.status, "-", result.answer, "-", result.usage.tokens, "tokens")


asyncio.run(main())
