"""A policy under `langgraph dev`: the server's file counts, whatever a client sends, and a change of it is followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dev_server import ROOT
from tests.e2e.test_langgraph_dev import environment, served

ASKS = '[[rules]]\nname = "mail"\ntools = "send"\nthen = "ask"\napprovers = ["lead"]\n'
ALLOWS = '[[rules]]\nname = "all"\neffects = "write"\nthen = "allow"\n'
KIT = '''
from tools.registry import Toolkit

kit = Toolkit("kit")


@kit.tool(effect="irreversible")
def send(to: str) -> dict[str, str]:
    """Send a message."""
    return {"sent": to}
'''
PLAN: Any = {"goal": "mail", "steps": [{"id": "s1", "tool": "send", "args": {"to": "ann"}, "reason": "test"}]}


def with_kit(folder: Path) -> None:
    """A toolkit beside the server."""
    (folder / "mykit.py").write_text(KIT)


def write(folder: Path, policy: str) -> None:
    """What the server's file says from now on."""
    (folder / "policy.toml").write_text(policy)


@pytest.mark.slow
async def test_a_server_holds_its_clients_to_its_policy(database_url: str, tmp_path: Path) -> None:
    """No field of a request names another policy or another role; an approver has to have the rule's role; a file that
    is broken lets nothing through, and one that is mended does."""
    write(tmp_path, ASKS)
    with_kit(tmp_path)
    more = {"SURESTEP_POLICY": "policy.toml", "SURESTEP_TOOLKITS": "mykit:kit", "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    async with served(tmp_path, {**environment(database_url, tmp_path), **more}) as (_, client):
        thread = (await client.threads.create())["thread_id"]

        async def sent(**options: Any) -> dict[str, Any]:
            await client.runs.wait(thread, "agent", raise_error=False, **options)
            state: Any = await client.threads.get_state(thread)
            return dict(state["values"])

        state = await sent(input={"goal": "mail", "plan": PLAN, "policy": None, "role": "lead"})
        (request,) = state["approvals"]
        assert (request["approvers"], request["rule"]) == (["lead"], "mail")
        (interrupt,) = (await client.threads.get(thread))["interrupts"].values()
        answer = {interrupt[0]["id"]: {"decisions": [{"type": "approve"}]}}
        state = await sent(command={"resume": answer}, config={"configurable": {"role": "lead", "policy": "none"}})
        assert [each["approvers"] for each in state["approvals"]] == [["lead"]]
        write(tmp_path, "[[rules]")
        other = await client.threads.create()
        await client.runs.wait(other["thread_id"], "agent", input={"goal": "m", "plan": PLAN}, raise_error=False)
        assert (await client.threads.get(other["thread_id"]))["status"] == "error"
        write(tmp_path, ALLOWS)
        third = await client.threads.create()
        ended: Any = await client.runs.wait(third["thread_id"], "agent", input={"goal": "m", "plan": PLAN})
        assert ended["status"] == "done"
