"""What the fields of a step mean, end to end: conditions, criteria, missing results, lists, and inputs that change."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from plans.decisions import Approve
from plans.errors import ArtifactMissing, PlanRejected
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel
from tools.registry import Toolkit

PRICE = step("s1", "price", args={"item": "ball"})
NO_BALL = ToolFailure("NOT_FOUND", "there is no ball")


async def test_when_false_skips_the_step_and_what_depends_on_it(agent_on: OpenAgent) -> None:
    """A skipped step is no failure: the run is done, and its dependents are skipped with it."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    cond = step("s2", "double", "s1", args={"number": 1}, when="s1.price > `100`")
    after = step("s3", "double", "s2", args={"number": "${s2.number}"})
    result = await agent.run(plan=plan(PRICE, cond, after))
    assert (result.status, [s.status for s in result.steps]) == ("done", ["done", "skipped", "skipped"])
    assert shop.calls == {"price": 1}


async def test_requires_false_fails_before_any_call(agent_on: OpenAgent) -> None:
    """A precondition that does not hold is PRECONDITION_FAILED, and the step's tool is not called."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    guarded = step("s2", "double", "s1", args={"number": 1}, requires="s1.price > `100`")
    result = await agent.run(plan=plan(PRICE, guarded))
    assert result.status == "failed"
    assert [failure.code for failure in result.failures] == ["PRECONDITION_FAILED"]
    assert shop.calls == {"price": 1}


async def test_requires_false_has_the_rest_planned_anew_where_a_model_can(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """The planner is told which precondition does not hold; what is finished stays, and nothing is sent."""
    shop = Shop()
    endpoint.answers(json.dumps(plan(step("n1", "double", args={"number": "${s1.price}"}))))
    agent = await agent_on([shop.kit], model=endpoint)
    guarded = step("s2", "send", "s1", args={"to": "ann", "text": "hi"}, requires="s1.price > `100`")
    result = await agent.run(plan=plan(PRICE, guarded))
    assert (result.status, [each.id for each in result.steps]) == ("done", ["s1", "n1"]), result.answer
    assert (result.usage.global_replans, shop.calls) == (1, {"price": 1, "double": 1})
    assert "PRECONDITION_FAILED" in endpoint.prompt(0)


async def test_success_when_false_is_no_success(agent_on: OpenAgent) -> None:
    """A result that does not meet the step's own criterion fails it with CRITERION_FALSE."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    result = await agent.run(plan=plan({**PRICE, "success_when": "price > `100`"}))
    assert (result.status, [failure.code for failure in result.failures]) == ("failed", ["CRITERION_FALSE"])


@pytest.mark.parametrize(
    ("policy", "status", "steps", "doubled"),
    [
        ("abort", "failed", ["failed", "pending", "done"], []),
        ("skip", "done", ["failed", "skipped", "done"], []),
        ("degrade", "done", ["failed", "done", "done"], [("look", None)]),
    ],
)
async def test_a_dependency_that_failed_for_good_is_read_from_the_dependent(
    agent_on: OpenAgent, policy: str, status: str, steps: list[str], doubled: list[object]
) -> None:
    """abort ends the run, skip leaves the step out, degrade runs it with null in the result's place; the answer says
    what is missing."""
    shop = Shop()
    shop.fails("double", NO_BALL)

    @shop.kit.tool(effect="read")
    async def look(number: int | None) -> dict[str, bool]:
        """Look at a number that may be missing."""
        shop.take("look", number)
        return {"seen": True}

    agent = await agent_on([shop.kit])
    failing = step("a", "double", args={"number": 1})
    reader = step("b", "look", args={"number": "${a.number}"}, on_dependency_failure=policy)
    result = await agent.run(plan=plan(failing, reader, PRICE))
    assert (result.status, [s.status for s in result.steps]) == (status, steps)
    assert [given for given in shop.given if given[0] == "look"] == doubled
    if status == "done":
        assert "there is no ball" in (result.answer or "")


async def test_for_each_runs_once_per_element_and_gives_results_in_order(agent_on: OpenAgent) -> None:
    """Whatever the order of completion, result i is element i's; an empty list gives an empty list."""
    kit = Toolkit("slow")

    @kit.tool(effect="read")
    async def wait(number: int) -> int:
        """The later the number, the sooner it is done."""
        await asyncio.sleep((5 - number) * 0.02)
        return number * 10

    @kit.tool(effect="read")
    async def total(numbers: list[int]) -> dict[str, list[int]]:
        """What came, as it came."""
        return {"numbers": numbers}

    agent = await agent_on([kit])
    each = step("e", "wait", args={"number": "${item}"}, for_each="${inputs.list}")
    end = step("t", "total", args={"numbers": "${e}"})
    result = await agent.run(plan=plan(each, end, answer="${t.numbers}"), inputs={"list": [1, 2, 3, 4]})
    assert result.answer == "[10, 20, 30, 40]"
    empty = await agent.run(plan=plan(each, end, answer="${t.numbers}"), inputs={"list": []})
    assert (empty.status, empty.answer) == ("done", "[]")


async def test_one_element_is_retried_alone_and_a_lost_one_fails_the_step(agent_on: OpenAgent) -> None:
    """A child's soft failure is retried without its siblings; one that fails for good fails the step with its code."""
    shop = Shop()
    shop.fails("double", ToolFailure("CONFLICT", "busy"))
    agent = await agent_on([shop.kit])
    each = step("e", "double", args={"number": "${item}"}, for_each="${inputs.list}")
    result = await agent.run(plan=plan(each), inputs={"list": [1, 2, 3]})
    assert (result.status, shop.calls["double"]) == ("done", 4)
    shop.fails("double", NO_BALL)
    lost = await agent.run(plan=plan(each), inputs={"list": [1, 2, 3]})
    assert (lost.status, lost.failures[-1].code) == ("failed", "NOT_FOUND")


async def test_who_may_do_without_a_lost_element_gets_the_others(agent_on: OpenAgent) -> None:
    """What there is: the list with null in the lost one's place, that element alone as null, and a list to go over
    without it. Which element is missing is said, and nothing else is."""
    shop = Shop()
    echoed: dict[str, list[object]] = {}

    @shop.kit.tool(effect="read")
    async def look(name: str, value: object) -> object:
        """Look at a value."""
        echoed.setdefault(name, []).append(value)
        if name == "e" and value == 2:
            raise NO_BALL
        return {"seen": value}

    def reader(name: str, value: str, **more: object) -> dict[str, object]:
        return step(name, "look", args={"name": name, "value": value}, on_dependency_failure="degrade", **more)

    agent = await agent_on([shop.kit])
    each = step("e", "look", args={"name": "e", "value": "${item}"}, for_each="${inputs.list}")
    readers = [
        reader("whole", "${e}"),
        reader("lost", "${e[1].seen}"),
        reader("there", "${e[2].seen}"),
        reader("all", "${e[*].seen}"),
        reader("over", "${item.seen}", for_each="${e}"),
    ]
    result = await agent.run(plan=plan(each, *readers), inputs={"list": [1, 2, 3]})
    assert (result.status, [each.step for each in result.missing]) == ("done", ["e[1]"])
    assert {name: values for name, values in echoed.items() if name != "e"} == {
        "whole": [[{"seen": 1}, None, {"seen": 3}]],
        "lost": [None],
        "there": [3],
        "all": [[1, 3]],
        "over": [1, 3],
    }
    assert "step whole was run without the result of e[1]" in (result.answer or "")


async def test_a_condition_about_a_step_without_a_result_is_told_how_to_read_it(agent_on: OpenAgent) -> None:
    """A step whose `when` asks for what is not there is left out, and says which word would let it look; with it the
    result is null."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    unwanted = {**PRICE, "when": "inputs.n > `5`"}
    other = step("s2", "double", args={"number": 1}, when="!s1")
    left_out = await agent.run(plan=plan(unwanted, other), inputs={"n": 1})
    assert "on_dependency_failure: degrade" in (left_out.steps[1].skipped_because or "")
    instead = await agent.run(plan=plan(unwanted, {**other, "on_dependency_failure": "degrade"}), inputs={"n": 1})
    assert ([each.status for each in instead.steps], instead.partial) == (["skipped", "done"], False)


async def test_each_element_that_needs_a_person_is_a_question_of_its_own(agent_on: OpenAgent) -> None:
    """Approving one letter sends that letter and no other."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    each = step("e", "send", args={"to": "${item}", "text": "hi"}, for_each="${inputs.list}", require_approval=True)
    result = await agent.run(plan=plan(each), inputs={"list": ["ann", "bob"]}, thread_id="t")
    assert [request.step_id for request in result.approvals] == ["e[0]", "e[1]"]
    one = await agent.resume("t", decisions={result.approvals[1].approval_id: Approve()})
    assert (one.status, [given[1][0] for given in shop.given]) == ("paused", ["bob"])
    both = await agent.resume("t", decisions={one.approvals[0].approval_id: Approve()})
    assert (both.status, [given[1][0] for given in shop.given]) == ("done", ["bob", "ann"])


async def test_a_repeated_effect_asks_first(agent_on: OpenAgent) -> None:
    """The same letter from two steps is sent once, and again only if a person says so."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    first = step("a", "send", args={"to": "ann", "text": "hi"})
    again = step("b", "send", "a", args={"to": "ann", "text": "hi"})
    result = await agent.run(plan=plan(first, again), thread_id="t")
    assert (result.status, shop.calls["send"]) == ("paused", 1)
    assert "repeat" in result.approvals[0].reason
    done = await agent.resume("t", decisions={result.approvals[0].approval_id: Approve()})
    assert (done.status, shop.calls["send"]) == ("done", 2)


async def test_a_rule_of_a_tool_is_kept_before_anybody_is_asked(agent_on: OpenAgent) -> None:
    """Arguments that break a rule fail with the rule's own words, as soon as they are known; no person is asked, and
    nothing is called."""
    shop = Shop()

    @shop.kit.tool(
        effect="irreversible", risk="high", rules=[{"condition": "amount <= `50`", "message": "at most 50 at a time"}]
    )
    async def pay(amount: int) -> dict[str, bool]:
        """Pay."""
        shop.take("pay", amount)
        return {"paid": True}

    agent = await agent_on([shop.kit])
    with pytest.raises(PlanRejected, match="RULE_VIOLATED: step a: pay: at most 50 at a time"):
        await agent.run(plan=plan(step("a", "pay", args={"amount": 70})))
    result = await agent.run(plan=plan(step("a", "pay", args={"amount": "${inputs.amount}"})), inputs={"amount": 70})
    assert (result.status, result.approvals, shop.calls["pay"]) == ("failed", (), 0)
    assert [failure.code for failure in result.failures] == ["RULE_VIOLATED"]
    assert "at most 50 at a time" in (result.answer or "")


async def test_an_input_file_that_changed_while_the_run_waited_is_told_and_nothing_is_sent(
    agent_on: OpenAgent, tmp_path: Path
) -> None:
    """A plan rests on its inputs: where one has other bytes on resume, the run ends and says so."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    file = tmp_path / "list.csv"
    file.write_text("a,b\n1,2\n", "utf-8")
    letter = step("a", "send", args={"to": "${inputs.list}", "text": "hi"}, require_approval=True)
    result = await agent.run(plan=plan(letter), inputs={"list": file}, thread_id="t")
    file.write_text("a,b\n9,9\n", "utf-8")
    after = await agent.resume("t", decisions={result.approvals[0].approval_id: Approve()})
    assert (after.status, shop.calls["send"]) == ("failed", 0)
    assert [failure.code for failure in after.failures] == ["INPUT_CHANGED"]
    assert "list" in (after.answer or "")


async def test_a_stored_result_that_is_gone_is_told_plainly(agent_on: OpenAgent, tmp_path: Path) -> None:
    """A large result lives in a file; where the file is gone, the resume says which result is missing."""
    shop = Shop()

    @shop.kit.tool(effect="read")
    def big() -> dict[str, str]:
        """More than fits beside a row."""
        return {"text": "x" * 40_000}

    agent = await agent_on([shop.kit])
    letter = step("a", "send", "b", args={"to": "ann", "text": "${b.text}"}, require_approval=True)
    result = await agent.run(plan=plan(step("b", "big"), letter), thread_id="t")
    named = (result.steps[0].output_ref or "").removeprefix("sha256-")
    [file] = [path for path in (tmp_path / "surestep" / "artifacts").rglob("*") if path.name == named]
    file.unlink()
    with pytest.raises(ArtifactMissing):
        await agent.resume("t", decisions={result.approvals[0].approval_id: Approve()})
    assert shop.calls["send"] == 0
