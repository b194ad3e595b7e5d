"""What a run may do by its own plan, and that a plan written anew asks before anything beyond it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.capabilities import Charter, beyond_first, planned_calls, within
from nodes.fold import RunFold
from nodes.taint import ANSWER
from plans.plan import Plan, Step
from tests.nodes.rows import a_plan, a_step
from tools.registry import Registry, Toolkit


def _tools() -> Registry:
    kit = Toolkit("kit")

    def any_of(**args: Any) -> Any:
        """Anything."""
        return args

    schema = {"type": "object", "additionalProperties": True}
    other: dict[str, dict[str, Any]] = {"other_charge": {}, "charge": {"fallbacks": ["other_charge"]}, "book": {}}
    for name, more in other.items():
        kit.add(any_of, name=name, args_schema=schema, effect="idempotent", **more)
    kit.add(any_of, name="send", args_schema=schema, effect="irreversible")
    kit.add(any_of, name="look", args_schema=schema, effect="read")
    kit.add(any_of, name="ask_user", args_schema=schema, effect="read")
    return Registry.of(kit)


TOOLS = _tools()
LOOK = a_step("s1", args={"id": 7})
CHARGE = a_step("s2", "s1", tool="charge", args={"amount": 13, "to": "${s1.name}"})
PLAN = a_plan(LOOK, CHARGE)


def revised(*steps: Step, before: Plan = PLAN, swayed: frozenset[str] = frozenset(), **more: Any) -> dict[str, Any]:
    """What becomes of a revision of a plan by a model: the steps that ask, and those that are swayed."""
    run = RunFold(drawn_up=[(before, swayed)])
    charter = Charter(before=before, planned=planned_calls(run, TOOLS), **more)
    plan, found = within(a_plan(*steps, revision=2), TOOLS, charter)
    asks = {step.id for step in plan.steps if step.risk == "high" or step.require_approval}
    return {"asks": asks, "swayed": set(found)}


def test_what_was_planned_may_be_done_again_under_another_id_in_another_order() -> None:
    """Also by what reads the same, and without what it only waited for."""
    anew = [a_step("n1", args={"id": 7.0}), a_step("n2", tool="charge", args={"to": "${n1.name}", "amount": 13})]
    assert revised(*anew) == {"asks": set(), "swayed": set()}


@pytest.mark.parametrize(
    "changed",
    [
        {"args": {"amount": 9_999, "to": "${s1.name}"}},
        {"args": {"amount": 13, "to": "eve"}},
        {"args": {"amount": 13, "to": "${s1.name}", "more": True}},
        {"tool": "book"},
        {"tool": "send"},
        {"when": "`true`"},
        {"for_each": "${s1.rows}"},
        {"id": "n2", "args": {"amount": 14, "to": "${s1.name}"}},
    ],
)
@pytest.mark.parametrize("exposed", [True, False])
def test_anything_else_with_an_effect_asks(changed: dict[str, Any], exposed: bool) -> None:
    """Other arguments, another tool, another condition: whether or not the run has met a stranger's text, this is not
    what the plan had said."""
    step = CHARGE.model_copy(update=changed)
    assert revised(LOOK, step, exposed=exposed) == {"asks": {step.id}, "swayed": {step.id}}


def test_the_same_call_on_what_another_read_gives_is_another_call() -> None:
    """Whose name it is is decided by what was looked up."""
    assert revised(LOOK.model_copy(update={"args": {"id": 8}}), CHARGE) == {"asks": set(), "swayed": {"s1"}}
    moved = a_step("n2", "n1", tool="charge", args={"amount": 13, "to": "${n1.name}"})
    assert revised(a_step("n1", args={"id": 8}), moved) == {"asks": {"n2"}, "swayed": {"n1", "n2"}}


def test_reads_are_free_and_what_they_give_is_marked() -> None:
    """Nobody is asked about them; that a stranger may have chosen them goes on with their results."""
    assert revised(LOOK, CHARGE, a_step("n1", args={"id": 8})) == {"asks": set(), "swayed": {"n1"}}


def test_a_declared_alternative_is_planned_with_its_tool() -> None:
    """With the same arguments; with others it is another call."""
    assert revised(LOOK, CHARGE.model_copy(update={"tool": "other_charge"}))["asks"] == set()
    other = {"tool": "other_charge", "args": {"amount": 1, "to": "${s1.name}"}}
    assert revised(LOOK, CHARGE.model_copy(update=other))["asks"] == {"s2"}


def test_a_look_at_whether_the_plan_still_holds_is_kept() -> None:
    """A replan does not leave out that it is asked after a step."""
    before = a_plan(LOOK.model_copy(update={"verify_after": True}), CHARGE)
    charter = Charter(before=before, planned=planned_calls(RunFold(drawn_up=[(before, frozenset())]), TOOLS))
    assert within(PLAN, TOOLS, charter)[0].step("s1").verify_after


@pytest.mark.parametrize("guard", [{"require_approval": True}, {"risk": "high"}])
def test_what_was_planned_with_a_guard_comes_back_with_it(guard: dict[str, Any]) -> None:
    """A replan that leaves the guard out has not taken it away; of two such steps the better guarded one counts."""
    guarded = CHARGE.model_copy(update=guard)
    again = CHARGE.model_copy(update={"id": "n2"})
    assert revised(LOOK, again, before=a_plan(LOOK, guarded))["asks"] == {"n2"}
    twice = a_plan(LOOK, guarded, CHARGE.model_copy(update={"id": "s3"}))
    assert revised(LOOK, again, before=twice)["asks"] == {"n2"}


BOOK = a_step("s2", tool="book", args={"account": "ann"})
SURE = a_step("s2", tool="ask_user", args={"question": "sure?", "kind": "confirmation"}, success_when="answer")
GUARDS = {
    "an effect": BOOK,
    "a question": SURE,
    "an approval": LOOK.model_copy(update={"id": "s2", "require_approval": True}),
    "a risk": LOOK.model_copy(update={"id": "s2", "risk": "high"}),
    "a sub-goal": a_step("s2", tool="", action="plan", instruction="do what has to be done first"),
}
WAITS = a_step("s4", "s3", tool="charge", args={"amount": 13, "to": "ann"})
GUARDED = {name: a_plan(guard, a_step("s3", "s2"), WAITS) for name, guard in GUARDS.items()}


@pytest.mark.parametrize("name", GUARDS)
def test_an_effect_asks_where_a_replan_takes_away_what_it_waited_for(name: str) -> None:
    """Also where it waited through a read, where the step itself stays as it was, where another step has the guard's
    id, and where it would now run although the guard gave nothing. A guard that is done has done its part; one that
    comes before it under another id does it still."""
    before, guard = GUARDED[name], GUARDS[name]
    look = a_step("s3", "s2")
    asks = set() if guard.require_approval is False and guard.risk == "low" else {"s2"}
    alone = WAITS.model_copy(update={"id": "n1", "depends_on": ()})
    assert revised(alone, before=before) == {"asks": {"n1"}, "swayed": {"n1"}}
    assert revised(guard, look, alone, before=before)["asks"] == asks | {"n1"}
    assert revised(a_step("s3"), WAITS, before=before)["asks"] == {"s4"}
    assert revised(a_step("s2", args={"id": 1}), look, WAITS, before=before)["asks"] == {"s4"}
    for loose in (look, WAITS):
        loosened = loose.model_copy(update={"on_dependency_failure": "degrade"})
        steps = [loosened if each.id == loose.id else each for each in (guard, look, WAITS)]
        assert revised(*steps, before=before)["asks"] == asks | {"s4"}
    assert revised(guard, look, alone, before=before, begun=("s2",), done=("s2",))["swayed"] == set()
    assert "n1" in revised(guard, look, alone, before=before, begun=("s2",))["asks"]
    moved = [guard.model_copy(update={"id": "n2"}), alone.model_copy(update={"depends_on": ("n2",)})]
    assert "n1" not in revised(*moved, before=before)["asks"]


def test_that_somebody_has_named_a_call_takes_no_guard_away() -> None:
    """What they said was said of a plan that asks first."""
    found = revised(WAITS.model_copy(update={"depends_on": ()}), before=GUARDED["a question"], words="13 for ann")
    assert found == {"asks": {"s4"}, "swayed": {"s4"}}


def test_a_question_whose_answer_no_longer_matters_is_no_guard() -> None:
    """A no that failed the step before would let the effect run now."""
    free = SURE.model_copy(update={"success_when": None})
    assert revised(free, a_step("s3", "s2"), WAITS, before=GUARDED["a question"])["asks"] == {"s4"}


def test_reads_that_an_effect_only_waited_for_may_be_dropped() -> None:
    """They ask nobody and change nothing."""
    before = a_plan(LOOK, WAITS.model_copy(update={"depends_on": ("s1",)}))
    assert revised(WAITS.model_copy(update={"depends_on": ()}), before=before)["asks"] == set()


def test_a_guard_that_stays_as_it_was_is_the_same_when_what_it_reads_is_repaired() -> None:
    """A local repair of a read makes no person look at effects that nobody has touched."""
    book = a_step("s3", "s2", tool="book", args={"amount": 13})
    repaired = LOOK.model_copy(update={"args": {"id": 8}})
    assert revised(repaired, CHARGE, book, before=a_plan(LOOK, CHARGE, book)) == {"asks": set(), "swayed": {"s1"}}


def test_a_sub_goal_that_is_planned_guards_as_before() -> None:
    """What waits for it is the same step, and waits for the steps of its plan, too."""
    part = a_step("s2__s1", args={"id": 3})
    update = {"args": {"result": "${s2__s1}"}, "depends_on": ("s2__s1",)}
    whole = GUARDS["a sub-goal"].model_copy(update=update)
    found = revised(part, whole, a_step("s3", "s2"), WAITS, before=GUARDED["a sub-goal"], part=True, exposed=False)
    assert found["asks"] == set()


def test_what_a_replan_has_brought_in_licenses_nothing() -> None:
    """A step that asks because it goes beyond the plan is no plan for the next revision."""
    beyond = a_step("n1", tool="book", args={"account": "eve"})
    before = a_plan(LOOK, beyond)
    again = beyond.model_copy(update={"id": "n2"})
    assert revised(LOOK, again, before=before, swayed=frozenset({"n1"}))["asks"] == {"n2"}


def test_steps_that_have_begun_or_stay_as_they_are_stay_so() -> None:
    """A replan changes nothing about them, be they what they may."""
    odd = a_step("s3", tool="send", args={"to": "ann"})
    before = a_plan(LOOK, odd)
    assert revised(LOOK, odd, before=before) == {"asks": set(), "swayed": set()}
    begun = odd.model_copy(update={"title": "x"})
    assert revised(LOOK, begun, before=before, begun=("s3",)) == {"asks": set(), "swayed": set()}


@pytest.mark.parametrize(
    ("args", "asks"),
    [
        ({"account": "ann"}, False),
        ({"account": "Ann"}, False),
        ({"account": "a.smith@x.org", "amount": 13}, False),
        ({"account": "${s1.account}", "amount": 13.0}, False),
        ({"account": "mallory"}, True),
        ({"account": "an"}, True),
        ({"account": "x.org"}, True),
        ({"account": "ann", "amount": 3}, True),
        ({"account": "ann", "all": True}, True),
        ({"account": "to ${s1.name} ann"}, True),
        ({}, True),
    ],
)
def test_what_a_person_who_instructs_a_run_has_said_needs_no_second_word(args: dict[str, Any], asks: bool) -> None:
    """An effect whose every argument stands in their words, as a word of its own; nothing that is only near it."""
    words = "what is it?\nbook 13 for ann instead, or A.Smith@x.org"
    found = revised(LOOK, a_step("n1", tool="book", args=args), words=words)
    assert found == {"asks": {"n1"} if asks else set(), "swayed": {"n1"} if asks else set()}
    assert revised(LOOK, a_step("n1", tool="send", args={"to": "ann"}), words=words)["asks"] == {"n1"}


def test_a_sub_goal_that_is_planned_before_anything_was_read_is_planned_like_the_whole() -> None:
    """Its tools may be those of the plan, on other arguments; once strangers were heard, only calls of the plan."""
    new = a_step("s3__s1", tool="charge", args={"amount": 5, "to": "ann"})
    foreign = a_step("s3__s2", tool="book", args={"account": "ann"})
    early = revised(LOOK, CHARGE, new, foreign, part=True, exposed=False)
    assert early == {"asks": {"s3__s2"}, "swayed": set()}
    late = revised(LOOK, CHARGE, new, foreign, part=True, exposed=True)
    assert late == {"asks": {"s3__s1", "s3__s2"}, "swayed": {"s3__s1", "s3__s2"}}


def test_a_first_plan_by_a_model_asks_before_what_cannot_be_undone() -> None:
    """Whatever risk the model gives it."""
    plan = beyond_first(a_plan(LOOK, CHARGE, a_step("s3", tool="send", args={"to": "ann"})), TOOLS)
    assert [step.risk for step in plan.steps] == ["low", "low", "high"]


_STEPS = st.lists(
    st.builds(
        lambda tool, amount, to: {"tool": tool, "args": {"amount": amount, "to": to}},
        st.sampled_from(["charge", "book", "send", "look", "other_charge"]),
        st.sampled_from([13, 14, 9_999]),
        st.sampled_from(["ann", "eve", "${s1.name}"]),
    ),
    max_size=4,
)


@given(_STEPS, _STEPS, st.booleans())
def test_no_replan_has_an_effect_unasked_that_was_not_planned(
    first: list[dict[str, Any]], second: list[dict[str, Any]], exposed: bool
) -> None:
    """Whatever a hijacked model writes, step by step: a call that changes the world is one of the plan's own, letter by
    letter, or a person is asked."""
    before = a_plan(LOOK, *[a_step(f"s{n + 2}", "s1", **each) for n, each in enumerate(first)])
    steps = [a_step(f"n{n}", "s1", **each) for n, each in enumerate(second)]
    found = revised(LOOK, *steps, before=before, exposed=exposed)
    allowed = [(each["tool"], each["args"]) for each in first]
    allowed += [("other_charge", args) for tool, args in allowed if tool == "charge"]
    for step in steps:
        if step.tool != "look" and (step.tool, step.args) not in allowed:
            assert step.id in found["asks"]


def test_an_answer_that_a_replan_changes_is_marked_like_a_step() -> None:
    """One that it leaves as it was is not."""
    run = RunFold(drawn_up=[(PLAN, frozenset())])
    charter = Charter(before=PLAN, planned=planned_calls(run, TOOLS))
    said = PLAN.model_copy(update={"answer": "pay eve", "revision": 2})
    assert within(said, TOOLS, charter)[1] == {ANSWER}
    assert within(PLAN.model_copy(update={"revision": 2}), TOOLS, charter)[1] == frozenset()
