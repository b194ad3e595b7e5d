"""Tests of which step runs may start, and in which order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.fold import RunFold, fold
from nodes.frontier import Frontier
from plans.plan import Plan
from plans.schedule import edges_of, remaining_path
from tests.nodes.rows import Row, a_plan, a_step, asked, begun, decided, done, failed, intended, planned


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of up to twelve steps, each depending on some of those before it."""
    count = draw(st.integers(1, 12))
    names = [f"s{number}" for number in range(count)]
    steps = []
    for place, name in enumerate(names):
        needed = draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=4)) if place else []
        steps.append(a_step(name, *needed))
    return a_plan(*steps)


ENDS = ("done", "skipped", "failed for good")


def end(picture: RunFold, unit: str, how: str) -> None:
    """A step run ends in one of the three ways in which its dependents need not wait any longer."""
    rows: dict[str, list[Row]] = {
        "done": [done(unit)],
        "skipped": [("skip", unit, 0, {"reason": "no"})],
        "failed for good": [failed(unit, code="NOT_FOUND"), decided(unit, 1, "next", "NOT_FOUND")],
    }
    for row in rows[how]:
        picture.apply(*row)


@given(plans(), st.data())
def test_a_step_starts_after_all_it_depends_on_and_exactly_once(plan: Plan, data: Any) -> None:
    """However many run at once and whichever ends first: no step starts early, twice or never."""
    picture = fold([begun(), planned(plan)])
    in_flight: set[str] = set()
    frontier = Frontier(plan, picture, in_flight)
    edges = edges_of(plan.steps)
    started: list[str] = []
    while True:
        while len(in_flight) < data.draw(st.integers(1, 3)) and (unit := frontier.pop(0.0)) is not None:
            assert all(picture.is_over(dependency) for dependency in edges[unit])
            started.append(unit)
            in_flight.add(unit)
            if data.draw(st.booleans()):  # another revision of the same steps is stored meanwhile
                frontier = Frontier(plan, picture, in_flight)
        if not in_flight:
            break
        unit = data.draw(st.sampled_from(sorted(in_flight)))
        end(picture, unit, data.draw(st.sampled_from(ENDS)))
        in_flight.discard(unit)
        frontier.push(unit)
        frontier.resolved(unit)
    assert sorted(started) == sorted(edges)


def test_what_depends_on_a_step_waits_for_the_look_at_its_result() -> None:
    """Also in a new process, and wherever it is told that the step is over."""
    plan, looked = a_plan(a_step("a"), a_step("b", "a")), set[str]()
    frontier = Frontier(plan, fold([begun(), planned(plan), done("a")]), (), lambda step: step == "a" and not looked)
    frontier.resolved("a")
    assert (frontier.pop(0.0), frontier.pop(0.0)) == ("a", None)
    looked.add("a")
    frontier.resolved("a")
    assert frontier.pop(0.0) == "b"


@given(plans(), st.data())
def test_a_result_that_is_to_be_looked_at_starts_its_step_once_more_and_keeps_its_dependents_waiting(
    plan: Plan, data: Any
) -> None:
    """Whatever else runs, in whatever order, and with a new revision at any time: each look happens exactly once, and
    nothing begins before the looks at all it depends on."""
    picture, edges = fold([begun(), planned(plan)]), edges_of(plan.steps)
    due = data.draw(st.sets(st.sampled_from(sorted(edges))))
    looked: list[str] = []
    in_flight: set[str] = set()

    def unchecked(step_id: str) -> bool:
        return step_id in due and step_id not in looked and picture.status(step_id) == "done"

    frontier = Frontier(plan, picture, in_flight, unchecked)
    while True:
        while len(in_flight) < data.draw(st.integers(1, 3)) and (unit := frontier.pop(0.0)) is not None:
            assert all(picture.is_over(name) and not unchecked(name) for name in edges[unit])
            in_flight.add(unit)
            if data.draw(st.booleans()):
                frontier = Frontier(plan, picture, in_flight, unchecked)
        if not in_flight:
            break
        unit = data.draw(st.sampled_from(sorted(in_flight)))
        if picture.is_over(unit):
            looked.append(unit)
        else:
            end(picture, unit, data.draw(st.sampled_from(ENDS)))
        in_flight.discard(unit)
        frontier.push(unit)
        frontier.resolved(unit)
    assert sorted(looked) == sorted(name for name in due if picture.status(name) == "done")
    assert all(picture.is_over(name) for name in edges)


@given(plans())
def test_of_the_ready_ones_the_longest_remaining_path_goes_first(plan: Plan) -> None:
    """What is popped is never less urgent than what follows at the same moment; equals keep the plan's order."""
    frontier = Frontier(plan, fold([begun(), planned(plan)]))
    remaining, place = remaining_path(edges_of(plan.steps)), {step.id: n for n, step in enumerate(plan.steps)}
    popped = []
    while (unit := frontier.pop(0.0)) is not None:
        popped.append(unit)
    assert popped == sorted(popped, key=lambda step_id: (-remaining[step_id], place[step_id]))
    assert popped


def test_a_retry_waits_for_its_time_and_keeps_nobody_else_waiting() -> None:
    """`next_at` is the time of the earliest that waits; others start meanwhile."""
    plan = a_plan(a_step("a"), a_step("b"))
    picture = fold([begun(), planned(plan), failed("a"), decided("a", 1, "retry", not_before=50.0)])
    frontier = Frontier(plan, picture)
    assert (frontier.next_at(), frontier.pop(0.0), frontier.next_at(), frontier.pop(49.0)) == (0.0, "b", 50.0, None)
    assert frontier.pop(50.0) == "a"
    assert (frontier.pop(99.0), frontier.next_at()) == (None, None)


def test_a_step_that_waits_for_a_person_is_not_ready() -> None:
    """It does not ask again by itself, also in a new process; once a person has decided it does."""
    plan = a_plan(a_step("a"), a_step("b"))
    frontier = Frontier(plan, fold([begun(), planned(plan), asked("a")]))
    assert (frontier.pop(0.0), frontier.pop(0.0)) == ("b", None)
    frontier.parked.discard("a")
    frontier.push("a")
    frontier.push("a")
    assert (frontier.pop(0.0), frontier.pop(0.0)) == ("a", None)


def test_what_is_in_flight_is_not_started_again() -> None:
    """A read that runs has left no trace in the picture; a new frontier must not take it for pending."""
    plan = a_plan(a_step("a"), a_step("b"))
    frontier = Frontier(plan, fold([begun(), planned(plan)]), {"a"})
    assert (frontier.pop(0.0), frontier.pop(0.0), frontier.next_at()) == ("b", None, None)


def test_an_effect_in_doubt_comes_back_until_a_person_is_asked() -> None:
    """In another process it is settled first of all; while its failure waits for an answer it is left alone."""
    plan = a_plan(a_step("a"))
    rows: list[Row] = [begun(), planned(plan), intended("a")]
    assert Frontier(plan, fold(rows)).pop(0.0) == "a"
    rows += [failed("a", 1, "UNKNOWN_OUTCOME"), decided("a", 1, "ask", "UNKNOWN_OUTCOME")]
    assert Frontier(plan, fold(rows)).pop(0.0) is None
    rows += [("settlement", "a", 1, {"how": "run", "by": "ann", "why": "it has not"})]
    assert Frontier(plan, fold(rows)).pop(0.0) == "a"


def test_children_start_only_while_their_parent_has_them() -> None:
    """A child of a step that is to be taken apart anew is not started beside it."""
    plan = a_plan(a_step("a", for_each="${inputs.list}"))
    expanded: Row = ("expansion", "a", 0, {"elements": ["h1", "h2"]})
    rows = [begun(), planned(plan), expanded, failed("a[0]"), decided("a[0]", 1, "retry", not_before=1.0)]
    frontier = Frontier(plan, fold(rows))
    frontier.push("a[1]")
    assert {frontier.pop(2.0), frontier.pop(2.0), frontier.pop(2.0)} == {"a[0]", "a[1]", None}
    limited = [*rows, failed("a", code="LIMIT_STEPS"), ("reopened", None, 0, {"limits": None})]
    again = Frontier(plan, fold(limited))
    assert (again.pop(2.0), again.pop(2.0)) == ("a", None)
