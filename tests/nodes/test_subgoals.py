"""What a sub-goal can do without, and what that means for the steps of its plan and for those that depend on it."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.fold import RunFold, fold
from nodes.frontier import Frontier
from nodes.subgoals import lacking, lost_around
from plans.plan import Plan, Step
from plans.subgoals import RESULT
from plans.tolerance import can_do_without, gone_on_without
from tests.nodes.rows import Row, a_plan, a_step, begun, decided, done, failed, planned

A = a_step("g__a")
B = a_step("g__b", "g__a")
APART = a_step("g__c")
AFTER = a_step("z", "g", on_dependency_failure="degrade")
LOST = failed("g__a"), decided("g__a", 1, "next")
REACHED: Row = ("reached", "g", 0, {"goal": "do it"})


def goal(result: Any = "${g__b}", *own: str, **more: Any) -> Step:
    """A planned sub-goal with the steps above."""
    fields: dict[str, Any] = {"action": "plan", "instruction": "do it", "args": {RESULT: result}, **more}
    return a_step("g", *(own or ("g__a", "g__b", "g__c")), tool=None, **fields)


def stood(plan: Plan, *rows: Row) -> RunFold:
    """A run of this plan after these rows."""
    return fold([begun(), planned(plan), *rows])


def test_once_a_step_of_it_is_lost_nothing_else_of_a_sub_goal_starts() -> None:
    """What is apart in its plan is left out too; what only depends on the sub-goal, and other steps, are not."""
    plan = a_plan(A, B, APART, goal(), AFTER)
    before, after = stood(plan), stood(plan, *LOST)
    assert [lost_around(plan, before, step) for step in plan.steps] == [None] * 5
    assert [lost_around(plan, after, step) is not None for step in plan.steps] == [True, True, True, False, False]
    assert lost_around(plan, after, APART) == "step g__a has failed, and without it the sub-goal of g is not reached"


@pytest.mark.parametrize(
    "plan",
    [
        a_plan(A, B, APART, goal(on_dependency_failure="degrade"), AFTER),
        a_plan(A, B.model_copy(update={"on_dependency_failure": "degrade"}), APART, goal(), AFTER),
    ],
)
def test_a_step_that_somebody_does_without_is_not_lost(plan: Plan) -> None:
    """The sub-goal itself may say so, or another step of its plan."""
    assert lost_around(plan, stood(plan, *LOST), APART) is None


def test_a_retry_loses_nothing() -> None:
    """Only a step that has failed for good is lost."""
    plan = a_plan(A, B, APART, goal(), AFTER)
    assert lost_around(plan, stood(plan, failed("g__a")), APART) is None


@pytest.mark.parametrize(
    ("result", "missing", "lacks"),
    [
        ("${g__b}", ("g__c",), ()),
        ("${g__c}", ("g__c",), ("g__c",)),
        ("b is ${g__b}\nc is ${g__c}", ("g__c",), ()),
        ({"b": "${g__b}", "c": "${g__c}"}, ("g__c",), ()),
        ({"b": "${g__b}", "c": "${g__c}"}, ("g__b", "g__c"), ("g__b", "g__c")),
        ("${g__b}", ("before", "g__c"), ("before",)),
        ("${g__c}", ("g__c[1]",), ("g__c[1]",)),
        ("${g__b}", ("g__c[1]",), ()),
    ],
)
def test_a_sub_goal_needs_what_its_result_is_made_of(
    result: Any, missing: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    """A step that a condition has left out is only missed where nothing stands for it: of a text a line goes, of an
    object a part. What the sub-goal depended on before it was planned counts as it always does."""
    step = goal(result, "before", "g__a", "g__b", "g__c")
    plan = a_plan(a_step("before"), A, B, APART, step, AFTER)
    left_out: list[Row] = [("skip", "g__c", 0, {"reason": "its condition is false: x", "unneeded": True})]
    assert lacking(plan, stood(plan, *left_out), step, missing) == lacks


def test_a_lost_step_is_missed_whatever_the_result_is_made_of() -> None:
    """A plan that could not be carried out has not reached its goal."""
    step = goal("${g__b}")
    plan = a_plan(A, B, APART, step, AFTER)
    ended = stood(plan, failed("g__c"), decided("g__c", 1, "next"))
    assert lacking(plan, ended, step, ("g__c",)) == ("g__c",)


def test_who_depends_on_a_sub_goal_says_whether_the_run_goes_on_without_a_step_of_it() -> None:
    """`abort` inside a sub-goal ends that; only where something after it cannot do without it, the run."""
    tolerant = a_plan(A, B, APART, goal(), AFTER).steps
    strict = a_plan(A, B, APART, goal(), a_step("z", "g")).steps
    inside = a_plan(A, B, APART, goal(on_dependency_failure="skip"), a_step("z", "g")).steps

    def nothing_settled(_: str) -> bool:
        return False

    for steps, may in ((tolerant, True), (strict, False)):
        assert [can_do_without(steps, name, nothing_settled) for name in ("g__a", "g__b", "g")] == [may] * 3
        assert [gone_on_without(steps, name) for name in ("g__a", "g__b", "g")] == [may] * 3
    assert can_do_without(inside, "g__b", nothing_settled)
    assert gone_on_without(inside, "g__b")
    assert can_do_without(strict, "g__b", {"g", "z"}.__contains__)


def test_a_sub_goal_that_is_reached_waits_for_its_plan_and_for_its_steps() -> None:
    """It asks no second time to start; planned, it waits for its steps; planned otherwise, or gone, it is not reached
    any more."""
    bare = a_plan(a_step("g", tool=None, action="plan", instruction="do it"))
    assert Frontier(bare, stood(bare)).pop(0.0) == "g"
    reached = stood(bare, REACHED)
    assert Frontier(bare, reached).pop(0.0) is None
    whole = a_plan(A, B, APART, goal(), revision=2)
    run = stood(bare, REACHED, planned(whole, "subgoal"))
    assert (run.reached, run.status("g"), run.kept()) == ({}, "pending", [])
    assert {Frontier(whole, run).pop(0.0)} == {"g__a"}
    over = stood(bare, REACHED, planned(whole, "subgoal"), done("g__a"), done("g__b"), done("g__c"))
    assert Frontier(whole, over).pop(0.0) == "g"
