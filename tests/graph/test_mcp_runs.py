"""Whole runs on tools of MCP servers: by the library and by the command line, killed in the middle, absent, refused."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from plans.errors import PlanRejected
from tests.graph.conftest import OpenAgent
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run
from tests.tools.mcp.conftest import READS, Served, eventually, listed
from tools.registry import Registry

HERE = Path(__file__).parents[1] / "tools" / "mcp"
LOOK = step("s1", "shop_look", args={})
ACT = step("s2", "shop_act", "s1", args={})


@pytest.fixture
def raw(tmp_path: Path) -> Served:
    """The server that does as a script says."""
    folder = tmp_path / "served"
    folder.mkdir()
    served = Served(folder, "raw_server.py")
    served.script(tools=[listed("look"), listed("act")])
    return served


def settings_of(served: Served, **more: str) -> str:
    """A settings file with this server."""
    said = "".join(f"{name} = {value}\n" for name, value in more.items())
    return (
        f"[mcp.shop]\ncommand = {json.dumps(served.command)}\nstart_timeout_s = 20\n{said}"
        '[mcp.shop.tools.look]\neffect = "read"\nretry = { initial_interval = 0.05 }\n'
    )


async def test_a_read_is_read_again_and_an_effect_is_asked_about(agent_on: OpenAgent, raw: Served) -> None:
    """One run: its read's server is killed and the run goes on; its irreversible call's is killed too, and a person is
    asked whether that has happened. Nothing is sent twice, and closing the agent leaves no child."""
    raw.script(tools=[listed("look"), listed("act")], answers={"look": {"kill_once": True}, "act": {"exit": 1}})
    agent = await agent_on([raw.kit(tools={"look": READS})])
    result = await agent.run(plan=plan(LOOK, ACT), thread_id="t1", approve="all")
    assert result.status == "paused"
    (asked,) = result.approvals
    assert (asked.kind, asked.step_id) == ("unknown_outcome", "s2")
    sent = [line.split()[0] for line in raw.calls() if line[0] != "{"]
    assert sent == ["look", "look", "act"]
    assert result.steps[0].status == "done"


async def test_an_agent_that_closes_leaves_no_child(raw: Served, database_url: str, tmp_path: Path) -> None:
    """Two runs at once share one connection; it ends with the agent, and two agents in a row have one each."""
    from graph.agent import open_agent

    kit = raw.kit(every=READS)
    for _ in range(2):
        async with open_agent([kit], database_url=database_url, folder=tmp_path, output=tmp_path / "out") as agent:
            done = await asyncio.gather(*(agent.run(plan=plan(LOOK)) for _ in range(2)))
            assert [each.status for each in done] == ["done", "done"]
            assert len(raw.alive()) == 1
        assert raw.alive() == []
    assert len(raw.pids()) == 3


async def test_a_server_that_is_down_leaves_the_other_tools(
    agent_on: OpenAgent, raw: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """A plan that names one of its tools is refused with the reason, another runs."""
    raw.script(exit=1)
    other = Served(raw.folder.parent / "other", "raw_server.py")
    other.folder.mkdir()
    other.script(tools=[listed("look")])
    agent = await agent_on([raw.kit(start_timeout_s=5), other.kit("other", every=READS)])
    assert [r.getMessage() for r in caplog.records if r.name == "surestep"] == [
        f"the toolkit 'shop' has no tools now: {Path(sys.executable).name} ended before it had answered"
    ]
    with pytest.raises(PlanRejected, match="the tool 'shop_look' is not there: the toolkit 'shop' has no tools now"):
        await agent.plan("a test", plan=plan(LOOK))
    assert (await agent.run(plan=plan(step("s1", "other_look", args={})))).status == "done"


def test_the_command_line_runs_a_plan_on_a_server_of_the_settings_file(
    project: Project, surestep: Run, raw: Served
) -> None:
    """`surestep run --plan` with `surestep.toml`: killed in the middle of the read, it is done all the same; stdout
    holds one object, and nothing of what the server prints."""
    raw.script(
        tools=[listed("look")], answers={"look": {"kill_once": True}}, stderr="chatter", garbage=["chatter on stdout"]
    )
    project.write("surestep.toml", settings_of(raw))
    ended = surestep("run", "--plan", str(project.write("plan.json", plan(LOOK))), "--json")
    assert ended.code == 0, ended
    assert ended.json["status"] == "done"
    assert "chatter" not in ended.err
    assert [line for line in raw.calls() if line[0] != "{"] == ["look {}", "look {}"]
    assert eventually(lambda: not raw.alive())


def test_the_command_line_asks_about_an_effect(project: Project, surestep: Run, raw: Served) -> None:
    """Of high risk without a word of ours; approved and killed in the middle, its outcome is unknown: exit 3."""
    raw.script(tools=[listed("look"), listed("act")], answers={"act": {"exit": 1}})
    project.write("surestep.toml", settings_of(raw))
    path = str(project.write("plan.json", plan(LOOK, ACT)))
    waiting = surestep("run", "--plan", path, "--thread", "t1", "--json")
    assert (waiting.code, waiting.json["approvals"][0]["kind"]) == (3, "risk")
    unknown = surestep("approve", "t1", "s2", "--json")
    assert (unknown.code, unknown.json["approvals"][0]["kind"]) == (3, "unknown_outcome")
    again = surestep("resume", "t1", "--json")
    assert again.code == 3
    assert [line.split()[0] for line in raw.calls() if line[0] != "{"] == ["look", "act"]


def test_tools_of_a_server_are_shown_without_its_secrets(project: Project, surestep: Run, raw: Served) -> None:
    """`tools`, `tools show`, `doctor` and `validate` know them; a command that only looks starts no server."""
    settings = settings_of(raw, env='{ TOKEN = "${MY_TOKEN}" }')
    project.write("surestep.toml", settings)
    assert "mcp.shop.env.TOKEN wants MY_TOKEN" in surestep("tools").err
    project.write("surestep.toml", settings.replace("${MY_TOKEN}", "topsecret"))
    shown = surestep("tools", "--json")
    found = {tool["name"]: tool for tool in shown.json["tools"] if tool["toolkit"] == "shop"}
    assert (found["shop_look"]["effect"], found["shop_act"]["effect"]) == ("read", "irreversible")
    assert surestep("validate", str(project.write("plan.json", plan(LOOK)))).code == 0
    said = shown.out + surestep("tools", "show", "shop_act").out + surestep("doctor", "--json").out
    assert "shop (2)" in said
    assert "topsecret" not in said
    before = len(raw.pids())
    assert surestep("runs").code == 0
    assert len(raw.pids()) == before


def test_a_second_start_finds_what_the_first_has_left(project: Project, surestep: Run, raw: Served) -> None:
    """A server that is away when a run is resumed is named as the reason, and the run can be resumed later."""
    project.write("surestep.toml", settings_of(raw))
    path = str(project.write("plan.json", plan(LOOK, ACT)))
    assert surestep("run", "--plan", path, "--thread", "t1", "--json").code == 3
    raw.script(exit=1)
    away = surestep("show", "t1", "--json")
    assert away.code == 0
    ended = surestep("approve", "t1", "s2", "--json")
    assert ended.code != 0
    assert "the toolkit 'shop' has no tools now" in ended.err + json.dumps(ended.json)


@pytest.mark.parametrize("hangs", ["in the start", "in a call"])
def test_a_ctrl_c_leaves_no_child(project: Project, raw: Served, hangs: str) -> None:
    """Stopped while a server does not greet, or does not answer: exit 5, a plain word, and the server is gone."""
    raw.script(tools=[listed("look")], mute=hangs == "in the start", answers={"look": {}})
    project.write("surestep.toml", settings_of(raw, every="{ timeout_s = 60 }"))
    child = project.start("run", "--plan", str(project.write("plan.json", plan(LOOK))))
    begun = raw.pids if hangs == "in the start" else raw.calls
    assert eventually(lambda: bool(begun()), 60)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (5, b""), err
    assert b"Traceback" not in err
    assert b"stopped" in err
    assert eventually(lambda: not raw.alive())


async def test_tools_loaded_by_the_adapters_can_be_added_too(raw: Served, tmp_path: Path) -> None:
    """langchain-mcp-adapters' tools are LangChain tools: `Toolkit.add` takes them, with a connection per call."""
    from langchain_mcp_adapters.client import MultiServerMCPClient

    from tests.tools.calls import context
    from tools.registry import Toolkit

    program, *arguments = raw.command
    connection: Any = {"transport": "stdio", "command": program, "args": arguments}
    kit = Toolkit("adapted")
    for tool in await MultiServerMCPClient({"shop": connection}).get_tools():
        kit.add(tool, effect="read")
    registry = Registry.of(kit)
    assert await registry["look"].invoke({}, context(tmp_path)) == "ok"
