"""Child runs of steps: made for whoever listens, and for nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from tests.running import plan, running, step
from tools.registry import Toolkit


async def test_a_run_that_nobody_traces_makes_no_child_runs(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own callback, which hears how drives end, is no reason to pay for a child run of each step."""
    kit = Toolkit("kit")

    @kit.tool(effect="read")
    async def look() -> str:
        """Look."""
        return "seen"

    made: list[str | None] = []
    invoke = RunnableLambda.ainvoke

    async def counted(self: RunnableLambda[object, object], *args: object, **more: object) -> object:
        made.append(self.name)
        return await invoke(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(RunnableLambda, "ainvoke", counted)
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(step("a", "look"), step("b", "look", "a")))
    assert (result.status, made) == ("done", [])
