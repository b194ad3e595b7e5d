"""Runs under a policy: what it allows, asks, and denies, and what becomes of a file that changes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graph.gateway import Agent
from plans.decisions import Approve, Edit, Reject
from plans.errors import ApprovalConflict, ConfigurationError, PlanRejected
from plans.principals import Principal
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel, completion

SEND = step("s1", "send", args={"to": "ann", "text": "hi"})
TEAM = {"tools": "send", "then": "ask", "approvers": ["lead"]}
ANYBODY = {"tools": "send", "then": "ask"}
ALLOW = {"effects": "write", "then": "allow"}
ANN, BOB, EVE = (Principal(name=name, roles=(role,)) for name, role in [("ann", "lead"), ("bob", "lead"), ("eve", "x")])


def write(file: Path, *rules: dict[str, Any], **more: Any) -> Path:
    """A policy file of these rules."""
    lines = [f"{name} = {_toml(value)}" for name, value in more.items()]
    for place, rule in enumerate(rules, 1):
        lines += ["[[rules]]", *(f"{name} = {_toml(value)}" for name, value in {"name": f"r{place}", **rule}.items())]
    file.write_text("\n".join(lines))
    return file


def broken(file: Path) -> None:
    """No policy at all."""
    file.write_text("[[rules]")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the policy of a test is."""
    return tmp_path / "policy.toml"


async def asked(agent: Agent, *, by: Sequence[Principal] = (), thread: str = "t") -> Any:
    """What waits on a thread, decided by these people if any are named."""
    (request,) = await agent.approvals(thread)
    for person in by:
        await agent.engine.approvals.decide(request.approval_id, Approve(), person)
    return request


async def test_a_policy_allows_asks_and_denies(agent_on: OpenAgent, file: Path) -> None:
    """A risky step that a rule allows runs unasked, one that a rule asks about waits for the people it names, and a
    plan with one that is denied is refused before anything of it runs."""
    large = {"tools": "send", "args": {"text": {"matches": ".*compensation.*"}}, **TEAM, "needed": 2, "expires_s": 600}
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, large, {**ALLOW, "args": {"to": {"one_of": ["ann"]}}}))
    assert (await agent.run(plan=plan({**SEND, "risk": "high"}))).status == "done"
    with pytest.raises(PlanRejected, match="no rule of the policy fits"):
        await agent.run(plan=plan(step("s1", "send", args={"to": "bob", "text": "hi"})))
    money = step("s1", "send", args={"to": "ann", "text": "your compensation"})
    assert (await agent.run(plan=plan(money), thread_id="t")).status == "paused"
    request = await asked(agent)
    assert (request.rule, request.approvers, request.needed) == ("r1", ("lead",), 2)
    assert (request.expires_at - request.created_at).total_seconds() == 600
    with pytest.raises(ApprovalConflict):
        await asked(agent, by=[EVE])
    await asked(agent, by=[ANN])
    assert (await agent.resume("t")).status == "paused"
    await agent.engine.approvals.decide(request.approval_id, Approve(), BOB)
    assert (await agent.resume("t")).status == "done"
    assert shop.calls["send"] == 2


async def test_who_starts_a_run_cannot_allow_what_another_has_to(agent_on: OpenAgent, file: Path) -> None:
    """Their yes and their edit do not count where the policy wants another's; their no does."""
    agent = await agent_on([Shop().kit], policy=write(file, {**ANYBODY, "by_another": True}), user="ann")
    for thread in ("t", "u"):
        assert (await agent.run(plan=plan(SEND), thread_id=thread)).status == "paused"
    request = await asked(agent)
    for word in (Approve(), Edit(args={"to": "eve", "text": "hi"})):
        with pytest.raises(ApprovalConflict, match="somebody else"):
            await agent.engine.approvals.decide(request.approval_id, word, ANN)
    await asked(agent, by=[BOB])
    assert (await agent.resume("t")).status == "done"
    (other,) = await agent.approvals("u")
    assert (await agent.resume("u", decisions={other.approval_id: Reject()})).status == "failed"


async def test_nobody_is_asked_less_because_a_file_changes(agent_on: OpenAgent, file: Path) -> None:
    """A run goes on under the policy it has begun under, however mild the file has become."""
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, TEAM))
    steps = plan(SEND, step("s2", "send", "s1", args={"to": "bob", "text": "hi"}))
    assert (await agent.run(plan=steps, thread_id="t")).status == "paused"
    write(file, ALLOW)
    await asked(agent, by=[ANN])
    assert (await agent.resume("t")).status == "paused"
    assert (await asked(agent)).approvers == ("lead",)
    assert (await agent.run(plan=steps, thread_id="other")).status == "done"


async def test_a_stricter_file_counts_at_once(agent_on: OpenAgent, file: Path) -> None:
    """What was approved by anybody before the file named its people is asked of them; what is denied now is not."""
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, ANYBODY))
    for thread in ("t", "u"):
        assert (await agent.run(plan=plan(SEND), thread_id=thread)).status == "paused"
        await asked(agent, by=[EVE], thread=thread)
    write(file, TEAM)
    assert (await agent.resume("t")).status == "paused"
    again = await asked(agent)
    assert again.approvers == ("lead",)
    assert "other terms" in again.reason
    write(file, {"tools": "send", "then": "deny", "message": "mail is stopped"})
    ended = await agent.resume("u")
    assert ended.status == "failed"
    assert "mail is stopped" in ended.failures[0].message
    assert shop.calls["send"] == 0


async def test_a_broken_file_stops_runs_and_loses_nothing(agent_on: OpenAgent, file: Path) -> None:
    """Nothing begins and nothing goes on under a policy that cannot be read; mended, all of it does."""
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, ANYBODY))
    assert (await agent.run(plan=plan(SEND), thread_id="t")).status == "paused"
    await asked(agent, by=[ANN])
    broken(file)
    with pytest.raises(ConfigurationError, match="no TOML"):
        await agent.resume("t")
    with pytest.raises(ConfigurationError, match="no TOML"):
        await agent.run(plan=plan(SEND), thread_id="u")
    assert shop.calls["send"] == 0
    write(file, ANYBODY)
    assert (await agent.resume("t")).status == "done"


async def test_edited_arguments_are_judged_as_what_they_are(agent_on: OpenAgent, file: Path) -> None:
    """Who may approve a small thing cannot make it a large one: that is asked of those whose it is."""
    small = {**TEAM, "args": {"text": {"one_of": ["hi"]}}, "approvers": ["x"]}
    agent = await agent_on([Shop().kit], policy=write(file, small, TEAM))
    assert (await agent.run(plan=plan(SEND), thread_id="t")).status == "paused"
    request = await asked(agent)
    edit = Edit(args={"to": "ann", "text": "take all of it"})
    await agent.engine.approvals.decide(request.approval_id, edit, EVE)
    assert (await agent.resume("t")).status == "paused"
    again = await asked(agent)
    assert (again.args["text"], again.approvers) == ("take all of it", ("lead",))


async def test_other_arguments_are_one_person_s_word(agent_on: OpenAgent, file: Path) -> None:
    """Where two have to agree, one of them cannot have it otherwise by an edit: the other is asked about that."""
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, {**TEAM, "needed": 2}))
    assert (await agent.run(plan=plan(SEND), thread_id="t")).status == "paused"
    request = await asked(agent)
    edit = Edit(args={"to": "eve", "text": "hi"})
    await agent.engine.approvals.decide(request.approval_id, edit, ANN)
    assert (await agent.resume("t")).status == "paused"
    assert (await asked(agent, by=[BOB])).needed == 2
    assert (await agent.resume("t")).status == "paused"
    await asked(agent, by=[ANN])
    assert (await agent.resume("t")).status == "done"
    assert shop.calls["send"] == 1


async def test_a_planner_is_offered_what_the_policy_may_allow(
    agent_on: OpenAgent, file: Path, endpoint: ScriptedModel
) -> None:
    """A tool that is denied whatever it is called with stands in no prompt, and a plan that names it is sent back."""
    first = json.dumps(plan(SEND))
    second = json.dumps(plan(step("s1", "price", args={"item": "ball"})))
    endpoint.answers(completion(first), completion(second))
    agent = await agent_on([Shop().kit], model=endpoint, policy=write(file))
    assert (await agent.run("mail ann the price of a ball")).status == "done"
    assert "cached_price" in endpoint.prompt(0)
    assert "Send a message" not in endpoint.prompt(0)
    assert "no rule of the policy fits" in endpoint.prompt(1)


async def test_the_preview_says_what_may_be_asked(agent_on: OpenAgent, file: Path) -> None:
    """By the policy and not by the tool's risk alone."""
    steps = plan(SEND, step("s2", "send", args={"to": "${inputs.who}", "text": "hi"}))
    rules = ({**ALLOW, "args": {"to": {"one_of": ["ann"]}}}, TEAM)
    agent = await agent_on([Shop().kit], policy=write(file, *rules))
    assert (await agent.plan(plan=steps, inputs={"who": "ann"})).approvals == ("s2",)
