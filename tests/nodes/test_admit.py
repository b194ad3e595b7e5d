"""Tests of the one function that is asked at every start of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.admit import Ask, Facts, Refuse, Run, Skip, admit, call_name, effect_name, idempotency_key, may_expand
from nodes.fold import RunFold, fold
from plans.limits import Limits
from plans.plan import Step
from tests.nodes.rows import Row, a_plan, a_step, answered, begun, done, failed, intended, planned
from tools.registry import Registry, Toolkit
from tools.tool import Tool

kit = Toolkit("shop")


@kit.tool(effect="read")
def look(item: str | None = None) -> dict[str, str]:
    """Look."""
    return {"seen": item or ""}


@kit.tool(effect="irreversible", identity_args=["to"])
def send(to: str, text: str) -> dict[str, str]:
    """Send."""
    return {"sent": text}


@kit.tool(effect="idempotent", roles=["clerk"], rules=[{"condition": "amount <= `10`", "message": "ten at most"}])
def refund(amount: int) -> dict[str, int]:
    """Refund: of high risk by its name."""
    return {"refunded": amount}


@kit.tool(effect="read", to_configure="set X to a host")
def unset() -> None:
    """Cannot be called yet."""


TOOLS: dict[str, Tool] = dict(Registry.of(kit))


def picture(step: Step, *rows: Row, limits: Limits | None = None) -> RunFold:
    """A run whose plan is this one step."""
    return fold([begun(limits), planned(a_plan(step)), *rows])


def facts(step: Step, unit: str | None = None, **more: Any) -> Facts:
    """What is known where nothing is special: the tool is there and on."""
    named = {"inputs": {"n": 3, "name": "ann"}, **more.pop("named", {})}
    return Facts(unit=unit or step.id, named=named, tool=TOOLS.get(step.tool or ""), **more)


LOOK = a_step("a", args={"item": "${inputs.name}"})
SEND = a_step("a", tool="send", args={"to": "ann", "text": "hi"})
REFUND = a_step("a", tool="refund", args={"amount": 5}, risk="high")


def test_a_read_runs_with_its_arguments_resolved() -> None:
    """References become values; the run's key and the call's name come with them."""
    admitted = admit(LOOK, picture(LOOK), facts(LOOK))
    assert isinstance(admitted, Run)
    assert (admitted.args, admitted.effect, admitted.missing) == ({"item": "ann"}, None, ())
    assert admitted.key == idempotency_key("r", "a", "look", {"item": "ann"})


@pytest.mark.parametrize(
    ("step", "changes", "code", "words"),
    [
        (LOOK, {"tool": None}, "TOOL_DISABLED", "not registered"),
        (LOOK, {"tool": replace(TOOLS["look"], enabled=False)}, "TOOL_DISABLED", "switched off"),
        (a_step("a", tool="unset", args={}), {}, "TOOL_DISABLED", "set X to a host"),
        (REFUND, {}, "NOT_PERMITTED", "clerk"),
        (a_step("a", args={"item": "${b.x}"}), {}, "UNRESOLVED_REFERENCE", "no result"),
        (a_step("a", args={"item": 3}), {}, "INVALID_ARGS", "item"),
        (a_step("a", tool="refund", args={"amount": 50}), {"role": "clerk"}, "RULE_VIOLATED", "ten at most"),
        (a_step("a", requires="inputs.n > `5`"), {}, "PRECONDITION_FAILED", "inputs.n"),
        (a_step("a", requires="max(inputs)"), {}, "PRECONDITION_FAILED", "requires"),
    ],
)
def test_what_may_not_start_fails_without_a_call(step: Step, changes: dict[str, Any], code: str, words: str) -> None:
    """Each refusal has its code, and says what is wrong; the attempt is counted."""
    known = facts(step)
    refusal = admit(step, picture(step), replace(known, **changes))
    assert isinstance(refusal, Refuse), refusal
    assert (refusal.failure.code, refusal.failure.step_id, refusal.failure.attempt) == (code, "a", 1)
    assert words in refusal.failure.message


@pytest.mark.parametrize(
    ("limits", "elapsed", "code"),
    [
        (Limits(max_wall_s=10.0), 10.0, "LIMIT_TIME"),
        (Limits(max_tokens=30), 0.0, "LIMIT_TOKENS"),
        (Limits(max_cost=0.5), 0.0, "LIMIT_COST"),
    ],
)
def test_a_limit_that_is_reached_lets_nothing_start(limits: Limits, elapsed: float, code: str) -> None:
    """What the run has used counts, whoever used it."""
    used: Row = ("model", None, 0, {"key": "k", "prompt_tokens": 20, "completion_tokens": 10, "cost": 0.5})
    refusal = admit(LOOK, picture(LOOK, used, limits=limits), facts(LOOK, elapsed_s=elapsed))
    assert isinstance(refusal, Refuse)
    assert refusal.failure.code == code
    assert isinstance(admit(LOOK, picture(LOOK, limits=limits), facts(LOOK, elapsed_s=9.9)), Run)


def test_a_false_condition_skips_before_anything_else_is_asked() -> None:
    """A step that is not wanted needs no tool, no permission and no arguments."""
    step = a_step("a", tool="refund", args={"amount": "${b.x}"}, when="inputs.n > `5`")
    assert admit(step, picture(step), facts(step)) == Skip("its condition is false: inputs.n > `5`", unneeded=True)


@pytest.mark.parametrize("policy", ["skip", "abort"])
def test_a_missing_result_skips_the_step_and_is_named(policy: str) -> None:
    """Only `degrade` runs with what there is."""
    step = a_step("a", "b", args={"item": "${b.x}"}, on_dependency_failure=policy)
    skipped = admit(step, picture(step), facts(step, missing=("b",), named={"b": None}))
    assert skipped == Skip("needs b, which gave no result")


def test_degrade_puts_null_in_the_place_of_what_is_missing() -> None:
    """A whole reference, with whatever path, becomes null; the other arguments are resolved as ever."""
    step = a_step("a", "b", args={"item": "${b.deep.path}"}, on_dependency_failure="degrade")
    admitted = admit(step, picture(step), facts(step, missing=("b",), named={"b": None}))
    assert isinstance(admitted, Run)
    assert (admitted.args, admitted.missing) == ({"item": None}, ("b",))
    mixed = a_step("a", "b", args={"item": "$${x} ${b} of ${inputs.name}"}, on_dependency_failure="degrade")
    admitted = admit(mixed, picture(mixed), facts(mixed, missing=("b",), named={"b": None}))
    assert isinstance(admitted, Run)
    assert admitted.args == {"item": "${x} null of ann"}


@pytest.mark.parametrize(
    ("step", "words"),
    [(replace_step, words) for replace_step, words in [
        (REFUND, "high risk"),
        (a_step("a", require_approval=True), "the plan asks"),
        (a_step("a", risk="high"), "high risk"),
    ]],
)  # fmt: skip
def test_a_risky_step_asks_until_a_person_has_decided_about_exactly_this_call(step: Step, words: str) -> None:
    """The approval holds for this step and these arguments, and for no other step or arguments."""
    known = facts(step, role="clerk")
    asked = admit(step, picture(step), known)
    assert isinstance(asked, Ask)
    assert words in asked.reason
    yes = answered("a", {"type": "approve"}, action=f"a|{asked.call}", call=asked.call)
    assert isinstance(admit(step, picture(step, yes), known), Run)
    other_step = answered("b", {"type": "approve"}, action=f"b|{asked.call}", call=asked.call)
    assert isinstance(admit(step, picture(step, other_step), known), Ask)
    other_call = call_name(step.tool or "", {"x": 1})
    other_args = answered("a", {"type": "approve"}, action=f"a|{other_call}", call=other_call)
    assert isinstance(admit(step, picture(step, other_args), known), Ask)


def test_a_rejected_call_does_not_come_back_under_another_id() -> None:
    """What a person has refused is refused for every step of the run, and nobody is asked again."""
    call = call_name("send", SEND.args)
    no = answered("z", {"type": "reject", "message": "no"}, action=f"z|{call}", call=call)
    refusal = admit(SEND, picture(SEND, no), facts(SEND))
    assert isinstance(refusal, Refuse)
    assert refusal.failure.code == "REJECTED"


def test_two_steps_for_a_model_are_two_calls() -> None:
    """A model's step is named by its instruction: refusing one leaves the others."""
    first = Step(id="a", action="llm", instruction="say no", require_approval=True)
    second = Step(id="b", action="llm", instruction="say yes", require_approval=True)
    asked = admit(first, picture(first), facts(first))
    assert isinstance(asked, Ask)
    assert asked.args == {"instruction": "say no"}
    no = answered("a", {"type": "reject", "message": ""}, action=f"a|{asked.call}", call=asked.call)
    assert isinstance(admit(first, picture(first, no), facts(first)), Refuse)
    assert isinstance(admit(second, picture(second, no), facts(second)), Ask)


EFFECT = effect_name(TOOLS["send"], SEND.args)


@pytest.mark.parametrize(
    ("rows", "starting"),
    [
        ([intended("z", effect=EFFECT), done("z")], {}),
        ([intended("z", effect=EFFECT)], {}),
        ([intended("z", effect=EFFECT), failed("z", 1, "UNKNOWN_OUTCOME")], {}),
        ([], {EFFECT: "z"}),
        ([intended("a", effect=EFFECT), failed("a", 1, "CRITERION_FALSE", happened=True)], {}),
    ],
    ids=["done", "in flight", "unknown", "about to start", "its own, without success"],
)
def test_an_effect_is_not_repeated_without_a_person(rows: list[Row], starting: dict[str, str]) -> None:
    """Done, in flight, unknown or about to start, by another step or this one: the same effect is asked about, and a
    reworded letter is the same letter."""
    reworded = SEND.model_copy(update={"args": {"to": "ann", "text": "hello"}})
    for step in (SEND, reworded):
        asked = admit(step, picture(step, *rows), facts(step, starting=starting))
        assert isinstance(asked, Ask)
        assert "repeat" in asked.reason
    elsewhere = SEND.model_copy(update={"args": {"to": "bob", "text": "hi"}})
    assert isinstance(admit(elsewhere, picture(elsewhere, *rows), facts(elsewhere, starting=starting)), Run)


def test_an_effect_that_certainly_did_not_happen_may_be_tried_again() -> None:
    """A definite failure is no repetition: a retry is not asked about."""
    rows = [intended("a", effect=EFFECT), failed("a", 1, "CONFLICT"),
            ("verdict", "a", 1, {"verdict": {"verdict": "retry", "step_id": "a", "attempt": 1, "code": "CONFLICT",
                                             "reason": "", "not_before": 0.0}})]  # fmt: skip
    assert isinstance(admit(SEND, picture(SEND, *rows), facts(SEND)), Run)


def test_a_for_each_step_asks_before_it_becomes_its_children() -> None:
    """Its condition, precondition and limits are looked at once; what reads `item` is asked of each child."""
    step = a_step("a", for_each="${inputs.list}", when="inputs.n > `5`")
    assert isinstance(may_expand(step, picture(step), facts(step)), Skip)
    per_item = a_step("a", for_each="${inputs.list}", when="item > `5`", requires="item < `9`")
    assert may_expand(per_item, picture(per_item), facts(per_item)) is None
    small, large = ({"item": item} for item in (3, 7))
    assert isinstance(admit(per_item, picture(per_item), facts(per_item, "a[0]", named=small)), Skip)
    assert isinstance(admit(per_item, picture(per_item), facts(per_item, "a[1]", named=large)), Run)
    needs = a_step("a", for_each="${inputs.list}", requires="inputs.n > `5`")
    assert isinstance(may_expand(needs, picture(needs), facts(needs)), Refuse)
    spent = picture(step, limits=Limits(max_wall_s=1.0))
    assert isinstance(may_expand(a_step("a", for_each="${x}"), spent, facts(step, elapsed_s=1.0)), Refuse)


keys = st.tuples(
    st.sampled_from(["r1", "r2"]),
    st.sampled_from(["a", "b", "a[0]"]),
    st.sampled_from(["send", "look"]),
    st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, 1.0, True, "1", None, [1], []]), max_size=2),
)


@given(keys, keys)
def test_a_key_is_the_same_for_the_same_call_and_for_no_other(one: Any, other: Any) -> None:
    """Run, step run, tool and canonical arguments make the key; 1, 1.0, true and "1" are different arguments."""
    same = repr(one[:3]) == repr(other[:3]) and repr(sorted(one[3].items(), key=str)) == repr(
        sorted(other[3].items(), key=str)
    )
    assert (idempotency_key(*one) == idempotency_key(*other)) == same
