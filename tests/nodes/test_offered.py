"""Tests of what a planner is offered."""

from __future__ import annotations

import json
from pathlib import Path

from tests.nodes.model_server import ScriptedModel
from tests.running import plan, running, step
from tools.call import call
from tools.context import ToolContext
from tools.registry import Toolkit


async def test_a_tool_whose_breaker_is_open_is_not_offered_to_the_planner(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """While it is left alone no plan is asked to count on it; the other tool stays."""
    kit = Toolkit("offered")

    @kit.tool(effect="read", retry={"max_attempts": 1}, repeats=None)
    async def flaky_lookup() -> int:
        """Look up, if it works."""
        raise ConnectionError

    @kit.tool(effect="read")
    async def steady_lookup() -> int:
        """Look up."""
        return 1

    answer = json.dumps(plan(step("s1", "steady_lookup")))
    endpoint.answers(answer)
    async with running(database_url, tmp_path, [kit], model=endpoint) as agent:
        await agent.run("look it up", thread_id="before")
        engine = agent.engine
        for _ in range(3):
            await call(engine.registry["flaky_lookup"], {}, ToolContext.bare(tmp_path), engine.ports)
        await agent.run("look it up once more", thread_id="after")
    before, after = (endpoint.prompt(index) for index in (0, -1))
    assert ("flaky_lookup" in before, "flaky_lookup" in after) == (True, False)
    assert "steady_lookup" in after
