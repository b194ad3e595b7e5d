"""Tests of what is wrong with a draft that only its run can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.gateway import Agent
from nodes.fold import RunFold, fold
from nodes.run_faults import (
    call_faults,
    failed_again,
    late_end,
    left_of,
    made_up,
    new_steps,
    room_faults,
    tool_faults,
)
from nodes.state import Planning
from nodes.stopping import limits_in_the_way
from plans.decisions import Approve
from plans.failure import ToolFailure
from plans.faults import Fault
from plans.limits import Limits
from plans.plan import PlanDraft
from tests.graph.kits import Shop
from tests.nodes.model_server import ScriptedModel
from tests.nodes.rows import a_plan, a_step, begun, decided, done, failed, intended, planned
from tests.running import plan, running, step
from tools.registry import Registry, Toolkit
from tools.tool import Tool

kit = Toolkit("shop")


@kit.tool(effect="irreversible", identity_args=["to"])
def send(to: str, text: str) -> str:
    """Send."""
    return to + text


@kit.tool(effect="read", fallbacks=[{"tool": "find"}])
def look(item: str) -> str:
    """Look."""
    return item


@kit.tool(effect="read")
def find(item: str) -> str:
    """Find."""
    return item


TOOLS: dict[str, Tool] = dict(Registry.of(kit))


def drafted(*steps: dict[str, Any]) -> PlanDraft:
    """A draft of these steps."""
    return PlanDraft.model_validate({"goal": "g", "steps": [{"tool": "look", "reason": "r", **each} for each in steps]})


def has_sent(**more: Any) -> RunFold:
    """A run whose step s has sent something to ann, or is about to."""
    from nodes.admit import effect_name

    effect = effect_name(TOOLS["send"], {"to": "ann", "text": "hi"})
    rows = [begun(), planned(a_plan(a_step("s", tool="send"))), intended("s", effect=effect)]
    return fold([*rows, done("s")] if more.get("finished") else rows)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("by_model", "asks", "severity"), [(True, False, "error"), (True, True, "warning"), (False, False, "warning")]
)
def test_a_plan_does_not_repeat_an_effect_that_was_had_or_may_have_been(
    finished: bool, by_model: bool, asks: bool, severity: str
) -> None:
    """By what identifies it, however it is worded; a model's plan may only where a person will be asked."""
    fold_, [again] = has_sent(finished=finished), drafted({"id": "n", "tool": "send", "require_approval": asks}).steps
    calls = [{"to": "bob", "text": "hi"}, {"to": "ann", "text": "once more"}]
    [fault] = call_faults(fold_, again, TOOLS["send"], calls, by_model=by_model)
    assert (fault.code, fault.step, fault.severity) == ("REPEATED_EFFECT", "n", severity)
    assert "step s" in fault.message
    assert call_faults(fold_, again, TOOLS["send"], calls[:1], by_model=by_model) == []


def test_what_failed_is_found_again_under_another_id_and_other_words() -> None:
    """The step that has failed now, and those that failed before and are gone; not a step on other grounds."""
    one, other = a_step("s", args={"item": "ball"}), a_step("s", args={"item": "box"})
    rows = [begun(), planned(a_plan(one)), failed("s", code="NOT_FOUND"), decided("s", 1, "local_replan")]
    rows += [planned(a_plan(other), "local", ["s#1"]), failed("s", 2, code="NOT_FOUND")]
    draft = drafted(
        {"id": "n1", "args": {"item": "ball "}, "title": "New"},
        {"id": "n2", "args": {"item": "box"}},
        {"id": "n3", "args": {"item": "cup"}},
        {"id": "n4", "args": {"item": "box"}, "depends_on": ["n3"]},
    )
    found = failed_again(fold(rows), draft, {step.id for step in draft.steps})
    assert [(fault.code, fault.step) for fault in found] == [("NO_PROGRESS", "n1"), ("NO_PROGRESS", "n2")]
    assert "s: s failed" in found[0].message


def test_steps_of_all_revisions_count_against_the_limit_of_steps() -> None:
    """Two that have run and are gone, and three that are planned, are more than four; and which limit would do is
    known."""
    gone = [a_step(name) for name in ("g1", "g2")]
    rows = [begun(Limits(max_steps=4)), planned(a_plan(*gone)), failed("g1"), failed("g2")]
    picture = fold([*rows, planned(a_plan(a_step("x"), revision=2))])
    draft = drafted({"id": "x"}, {"id": "y"}, {"id": "z"})
    [fault] = room_faults(picture, draft)
    assert fault.code == "TOO_MANY_STEPS"
    [hit] = limits_in_the_way(picture, draft, [fault])
    assert (hit.code, hit.limit, hit.needed) == ("LIMIT_STEPS", "max_steps", 5)
    assert limits_in_the_way(picture, draft, [fault, Fault(code="CYCLE", message="c")]) == []
    assert room_faults(picture, drafted({"id": "x"}, {"id": "y"})) == []


def test_a_plan_that_needs_more_attempts_than_are_left_is_not_begun() -> None:
    """Finished steps need none any more, and one with a condition may need none."""
    rows = [begun(Limits(max_total_attempts=3)), planned(a_plan(a_step("a"), a_step("b"))), done("a")]
    draft = drafted({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d", "when": "inputs.x"})
    assert room_faults(fold(rows), draft) == []
    [fault] = room_faults(fold(rows), drafted(*({"id": name} for name in "abcd")))
    assert (fault.code, "3 steps are to run" in fault.message) == ("LIMIT_INFEASIBLE", True)


def test_tools_are_judged_for_new_steps_only() -> None:
    """What has run with a tool that is off now is kept. A plan of people's goes to the tool's fallback, where it has
    one; a model was offered others."""
    faults = [
        Fault(code="TOOL_UNAVAILABLE", step=name, message="off") for name in ("old", "new", "plain")
    ]  # fmt: skip
    steps = {step.id: step for step in drafted({"id": "new"}, {"id": "plain", "tool": "find"}).steps}
    for by_model, severities in ((True, ["error", "error"]), (False, ["warning", "error"])):
        found = tool_faults(faults, TOOLS, steps, by_model=by_model)
        assert ([fault.step for fault in found], [fault.severity for fault in found]) == (["new", "plain"], severities)


def test_new_is_what_the_revision_before_does_not_have_as_it_is() -> None:
    """Whether a kept step comes as it was stored or as it was drafted."""
    picture = fold([begun(), planned(a_plan(a_step("a"), a_step("b")))])
    assert picture.plan is not None
    kept = picture.plan.draft.steps
    changed = kept[1].model_copy(update={"args": {"item": "x"}})
    draft = picture.plan.draft.model_copy(update={"steps": (kept[0], changed)})
    assert new_steps(picture, draft) == [changed]


def test_time_that_is_left_is_for_the_steps_that_are_left() -> None:
    """A first plan has what planning has left; a later one is warned where the open steps alone may take longer."""
    assert left_of(Limits(max_wall_s=10.0), 4.0, first=True).max_wall_s == 6.0
    assert left_of(Limits(max_wall_s=10.0), 4.0, first=False).max_wall_s is None
    picture = fold([begun(), planned(a_plan(a_step("a"), a_step("b"))), done("a")])
    chain = {"timeout_s": 4}
    draft = drafted(
        {"id": "a", **chain}, {"id": "b", **chain, "depends_on": ["a"]}, {"id": "c", **chain, "depends_on": ["b"]}
    )
    assert late_end(picture, draft, TOOLS, 8.0) == []
    [fault] = late_end(picture, draft, TOOLS, 7.0)
    assert (fault.code, fault.severity, "8 s in a row" in fault.message) == ("OVER_DEADLINE", "warning", True)


async def of_drafts(agent: Agent) -> list[tuple[bool, list[str]]]:
    """What became of each draft: whether it was used, and its faults."""
    rows = await agent.engine.database.fetch("SELECT body FROM surestep.journal WHERE kind = 'draft' ORDER BY fence, n")
    return [(row["body"]["valid"], [fault["code"] for fault in row["body"]["faults"]]) for row in rows]


async def test_the_same_failing_plan_in_other_words_goes_to_a_person_and_not_round_in_a_circle(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """A planner that answers every failure with the same call under a new id is told so, and not followed: the tool is
    called once, whatever the model calls its plans; then a person is asked."""
    shop = Shop()
    shop.fails("double", *[ToolFailure("NOT_FOUND", "no such number")] * 9)
    same = [json.dumps(plan(step(f"n{n}", "double", args={"number": 1}, title=f"Try {n}"))) for n in range(9)]
    endpoint.answers(*same)
    async with running(database_url, tmp_path, [shop.kit], model=endpoint) as agent:
        asking = await agent.run(plan=plan(step("s1", "double", args={"number": 1})), thread_id="t")
        told = [codes for valid, codes in await of_drafts(agent) if not valid]
    assert (asking.status, shop.calls["double"]) == ("paused", 1), asking.answer
    assert {code for codes in told for code in codes} == {"NO_PROGRESS"}
    assert "it does what has failed already (s1: no such number)" in endpoint.prompt(1)
    assert [request.kind for request in asking.approvals] == ["question"]


async def test_a_replan_that_would_send_again_is_refused_and_one_that_asks_waits(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """The letter is out when the plan's premise breaks: the planner's first new plan sends it again and is refused
    before anything of it runs; its second asks a person, who decides."""
    shop = Shop()
    letter = step("s1", "send", args={"to": "${inputs.who}", "text": "hi"})
    broken = step("s2", "double", "s1", args={"number": 1}, success_when="number > `100`")
    again = step("n1", "send", args={"to": "ann", "text": "hi"})
    holds = json.dumps({"holds": True, "reason": "yes"})
    endpoint.answers(json.dumps(plan(again)), json.dumps(plan({**again, "require_approval": True})), holds)
    async with running(database_url, tmp_path, [shop.kit], model=endpoint) as agent:
        asking = await agent.run(plan=plan(letter, broken), inputs={"who": "ann"}, thread_id="t")
        assert (asking.status, shop.calls["send"]) == ("paused", 1), asking.answer
        assert (await of_drafts(agent))[1] == (False, ["REPEATED_EFFECT"])
        assert "REPEATED_EFFECT" in endpoint.prompt(1)
        assert "repeat what step s1 has done" in asking.approvals[0].reason
        sent = await agent.resume("t", decisions={asking.approvals[0].approval_id: Approve()})
    assert (sent.status, shop.calls["send"]) == ("done", 2)


@pytest.mark.parametrize(
    ("result", "planning", "codes"),
    [
        ({"number": 5}, Planning(), ["INVALID_ARGS"]),
        ("5", Planning(purpose="global"), ["INVALID_ARGS"]),
        ("5", Planning(purpose="local", step_id="s2"), ["INVALID_ARGS"]),
        ("5", Planning(purpose="subgoal", step_id="s3"), ["INVALID_ARGS"]),
        ("5", Planning(purpose="subgoal", step_id="s2"), []),
        ("${s1}", Planning(), []),
    ],
)
def test_a_model_cannot_write_what_a_sub_goal_comes_to(result: Any, planning: Planning, codes: list[str]) -> None:
    """A result that no step gives would be made up; only the plan of the sub-goal itself may come to a plain text."""
    goal = {"tool": None, "action": "plan", "instruction": "find it", "args": {"result": result}, "depends_on": ["s1"]}
    draft = drafted({"id": "s1", "args": {"item": "ball"}}, {"id": "s2", **goal})
    assert [fault.code for fault in made_up(draft.steps, planning)] == codes


async def test_a_sub_goal_with_a_made_up_result_is_drafted_again(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """It is no step that is done: the model is told so, and what it then leaves open is planned when it is reached."""
    goal: dict[str, Any] = {"id": "x", "action": "plan", "instruction": "find it", "reason": "r"}
    answers = [
        plan({**goal, "args": {"result": "made up"}}),
        plan(goal),
        plan(step("a", "find", args={"item": "ball"})),
    ]
    endpoint.answers(*map(json.dumps, answers))
    async with running(database_url, tmp_path, [kit], model=endpoint) as agent:
        result = await agent.run("where is it?")
    assert (result.status, [each.id for each in result.steps]) == ("done", ["x__a", "x"])
    assert "that no step gives" in endpoint.prompt(1)
