"""An agent on a test's own database, for the tests of nodes and of recovery."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from tests.nodes.model_server import ScriptedModel
from tools.registry import Toolkit


@asynccontextmanager
async def running(
    database_url: str, folder: Path, toolkits: Sequence[Toolkit], *, model: ScriptedModel | None = None, **more: Any
) -> AsyncIterator[Agent]:
    """An agent with exactly these tools, and with the scripted model if one is given."""
    named: dict[str, Any] = {"model": "scripted", "base_url": model.base_url, "api_key": "key-1"} if model else {}
    # Some tests look into a thread's history, which "exit" does not keep.
    named |= {"folder": folder / "surestep", "output": folder / "out", "durability": "async"}
    settings = Settings.load(environment={}, database_url=database_url, **{**named, **more})
    async with open_agent(toolkits, settings=settings) as agent:
        yield agent


def step(step_id: str, tool: str, /, *after: str, **more: Any) -> dict[str, Any]:
    """A step as a plan file has it."""
    return {"id": step_id, "tool": tool, "args": {}, "depends_on": list(after), "reason": "test", **more}


def plan(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan of these steps."""
    return {"goal": "a test", "steps": list(steps), **more}
