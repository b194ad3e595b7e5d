"""When a plan is asked whether it still holds, and what its own conditions settle. All of it is pure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodes.fold import RunFold, fold
from nodes.inheritance import inheritance
from nodes.verify_when import by_condition, checked_after, doubt, is_unchecked, unjudged
from plans.plan import Plan, Step
from tests.nodes.rows import Row, a_plan, a_step, begun, done, planned
from tools.registry import Registry, Toolkit

KIT = Toolkit("kit")


@KIT.tool(effect="read")
def look() -> int:
    """Look."""
    return 1


@KIT.tool(effect="irreversible", risk="low")
def pay(amount: int = 0) -> int:
    """Pay."""
    return amount


@KIT.tool(effect="idempotent", risk="low")
def note() -> int:
    """Note."""
    return 1


TOOLS = Registry.of(KIT)


def llm(step_id: str, *after: str, **more: Any) -> Step:
    """A step that a model carries out."""
    return Step(id=step_id, action="llm", instruction="judge", depends_on=after, **more)


def checked(step_id: str, *, holds: bool | None = True, by: str = "model", when: str = "after", of: Any = ()) -> Row:
    """What came out of a check."""
    body = {"when": when, "by": by, "reason": "because", "of": list(of or [step_id]), "holds": holds}
    return "check", step_id, 1, body


def picture(plan: Plan, *rows: Row) -> RunFold:
    """A run of this plan after these rows."""
    return fold([begun(), planned(plan), *rows])


def test_marked_steps_and_judgements_about_money_are_looked_at() -> None:
    """And no other step is."""
    plan = a_plan(
        a_step("m", verify_after=True),
        llm("j", "m"),
        a_step("p", "j", tool="pay", args={"amount": "${j.due}"}),
        llm("k"),
    )
    assert checked_after(plan, TOOLS) == {"m", "j"}


def test_a_result_is_looked_at_once_it_is_there_and_once() -> None:
    """A step that has not ended well has none, and a look before its effect is not one after it."""
    plan = a_plan(a_step("s1", verify_after=True))
    assert not is_unchecked(picture(plan), "s1")
    assert is_unchecked(picture(plan, done("s1")), "s1")
    assert is_unchecked(picture(plan, checked("s1", when="before"), done("s1")), "s1")
    assert not is_unchecked(picture(plan, done("s1"), checked("s1")), "s1")


def test_a_step_that_becomes_another_is_looked_at_again() -> None:
    """What is known of its result, and what was in doubt, goes with it."""
    plan, other = a_plan(a_step("s1")), a_plan(a_step("s1", title="new"), revision=2)
    before = picture(plan, done("s1"), checked("s1", holds=None))
    assert (before.checked, before.unsure) == ({"s1"}, {"s1": "because"})
    before.apply(*planned(other, purpose="local"))
    assert (before.checked, before.unsure, before.run("s1").check) == (set(), {}, None)


def test_a_fork_takes_over_what_came_out() -> None:
    """A kept step was looked at, and is not looked at again."""
    plan = a_plan(a_step("s1", verify_after=True), a_step("s2", "s1"))
    parent = picture(plan, done("s1"), checked("s1"), done("s2"))
    taken = json.loads(json.dumps(inheritance(parent, "s2")))
    fork = fold([begun(), ("inherited", None, 0, taken), planned(plan)])
    assert fork.run("s1").check == parent.run("s1").check
    assert not is_unchecked(fork, "s1")


def test_a_criterion_that_was_met_settles_it() -> None:
    """The step has succeeded by what its author asked of it; no model is needed."""
    step = a_step("s1", success_when="total > `1`", verify_after=True)
    check = by_condition(step, a_plan(step), {})
    assert check is not None
    assert (check.by, check.holds, check.of) == ("expression", True, ("s1",))
    assert "total > `1`" in check.reason


@pytest.mark.parametrize(("value", "holds"), [({"open": True}, True), ({"open": False}, None), (None, None)])
def test_preconditions_of_all_that_waits_settle_it(value: Any, holds: Any) -> None:
    """Where they are true it holds; where they are not, or cannot be judged yet, they are judged where they stand."""
    step = a_step("s1", verify_after=True)
    plan = a_plan(step, a_step("s2", "s1", requires="s1.open"), a_step("s3", "s1", requires="s1.open && s1.open"))
    check = by_condition(step, plan, {} if value is None else {"s1": value})
    assert check is not None
    assert (check.by, check.holds) == ("expression", holds)
    half = a_plan(step, a_step("s2", "s1", requires="s1.open"), a_step("s3", "s1"))
    assert by_condition(step, half, {"s1": value}) is None
    assert by_condition(step, a_plan(step), {"s1": value}) is None


def test_an_effect_looks_at_all_reads_it_rests_on_that_nobody_has_judged() -> None:
    """Near and far, through other effects, judgements of models among them; not what a criterion, a precondition or an
    earlier look has judged."""
    steps = [
        a_step("r1"),
        a_step("r2", "r1"),
        a_step("e", "r2", tool="pay"),
        llm("j", "e"),
        a_step("c", success_when="@"),
        a_step("q"),
        a_step("f", "j", "c", "q", tool="pay", requires="q"),
    ]
    plan = a_plan(*steps)
    names = ("r1", "r2", "e", "j", "c", "q")
    rows = [done(name) for name in names]
    last = steps[-1]
    assert unjudged(last, picture(plan, *rows), plan, TOOLS) == ("j", "r2", "r1")
    assert unjudged(last, picture(plan, *rows, checked("e", when="before", of=["r2", "r1"])), plan, TOOLS) == ("j",)
    assert unjudged(last, picture(plan, *rows, checked("r2")), plan, TOOLS) == ("j", "r1")
    without = [row for row in rows if row[1] != "r2"]
    assert unjudged(last, picture(plan, *without, ("skip", "r2", 0, {"reason": "no"})), plan, TOOLS) == ("j", "r1")


def test_an_open_question_is_a_person_s_before_what_cannot_be_undone() -> None:
    """Of a model that was of no use, anywhere behind the effect; not where nobody could be asked, and not before what
    can be repeated and is of low risk."""
    steps = [a_step("r"), a_step("n", "r", tool="note"), a_step("p", "n", tool="pay"), a_step("x", tool="pay")]
    plan = a_plan(*steps)
    open_one = picture(plan, done("r"), checked("r", holds=None))
    said = doubt(steps[2], TOOLS["pay"], open_one, plan)
    assert said is not None
    assert "because" in said
    assert doubt(steps[1], TOOLS["note"], open_one, plan) is None
    assert doubt(steps[1].model_copy(update={"risk": "high"}), TOOLS["note"], open_one, plan) is not None
    assert doubt(steps[3], TOOLS["pay"], open_one, plan) is None
    assert doubt(steps[0], TOOLS["look"], open_one, plan) is None
    nobody = picture(plan, done("r"), checked("r", holds=None, by="nobody"))
    assert doubt(steps[2], TOOLS["pay"], nobody, plan) is None
