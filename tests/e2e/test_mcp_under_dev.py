"""Tools of an MCP server of the settings file under `langgraph dev`: called without blocking its event loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_langgraph_dev import environment, served
from tests.graph.kits import plan, step
from tests.tools.mcp.conftest import Served, eventually, listed


@pytest.mark.slow
async def test_a_run_under_langgraph_dev_calls_a_server_of_the_settings_file(database_url: str, tmp_path: Path) -> None:
    """Two runs, one connection; killed with SIGKILL, the server leaves a child that ends by itself."""
    folder = tmp_path / "served"
    folder.mkdir()
    raw = Served(folder, "raw_server.py")
    raw.script(tools=[listed("look")])
    said = f'[mcp.shop]\ncommand = {json.dumps(raw.command)}\nstart_timeout_s = 30\nevery = {{ effect = "read" }}\n'
    (tmp_path / "surestep.toml").write_text(said)
    async with served(tmp_path, environment(database_url, tmp_path)) as (server, client):
        for _ in range(2):
            thread = await client.threads.create()
            given: Any = {"goal": "look", "plan": plan(step("s1", "shop_look", args={}))}
            result: Any = await client.runs.wait(thread["thread_id"], "agent", input=given)
            assert result.get("status") == "done", (result, server.log()[-3000:])
        assert len(raw.alive()) == 1
    assert [line for line in raw.calls() if line[0] != "{"] == ["look {}"] * 2
    assert eventually(lambda: not raw.alive())
