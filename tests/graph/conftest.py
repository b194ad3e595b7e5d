"""Fixtures of the graph's tests: agents on a fresh real database, and a scripted model on a real local server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from graph.agent import open_agent
from graph.gateway import Agent
from graph.settings import Settings
from tests.nodes.model_server import ScriptedModel
from tools.registry import Toolkit

OpenAgent = Callable[..., Any]


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> ScriptedModel:
    """A model endpoint that answers as the test says."""
    return ScriptedModel(httpserver)


@pytest.fixture
async def agent_on(database_url: str, tmp_path: Path) -> AsyncIterator[OpenAgent]:
    """`await agent_on([toolkit], model=endpoint)`: an agent on this test's database; closed when the test ends."""
    async with AsyncExitStack() as stack:

        async def opened(toolkits: Sequence[Toolkit], *, model: ScriptedModel | None = None, **more: Any) -> Agent:
            named: dict[str, Any] = (
                {"model": "scripted", "base_url": model.base_url, "api_key": "key-1"} if model else {}
            )
            settings = Settings.load(
                environment={},
                database_url=database_url,
                folder=tmp_path / "surestep",
                output=tmp_path / "out",
                **named,
                **more,
            )
            return await stack.enter_async_context(open_agent(toolkits, settings=settings))

        yield opened
