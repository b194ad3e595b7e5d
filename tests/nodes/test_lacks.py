"""What an ended run is without: said by step, never of what the plan itself has left out."""

from __future__ import annotations

from typing import Any

import pytest

from graph.result_of import result_of
from nodes.answer_lines import filled, value_of
from nodes.fold import RunFold, fold
from nodes.lacks import lacks
from plans.references import UnresolvedReference
from plans.values import sha256_of
from tests.nodes.rows import Row, a_plan, a_step, begun, decided, done, failed, planned


def skipped(unit: str, reason: str, **more: Any) -> Row:
    """A step run that is left out."""
    return "skip", unit, 0, {"reason": reason, **more}


def picture(*rows: Row, **each: str) -> RunFold:
    """A run of the plan a → b → c, where c may be said to go over a list."""
    steps = (a_step("a"), a_step("b", "a"), a_step("c", "b", for_each=each.get("c")))
    return fold([begun(), planned(a_plan(*steps)), *rows])


NEEDS_A = skipped("b", "needs a, which gave no result")
NEEDS_B = skipped("c", "needs b, which gave no result")
UNWANTED = skipped("a", "its condition is false: x", unneeded=True)


def test_what_failed_and_what_was_left_out_for_it_are_missing() -> None:
    """Each with its own reason, in plan order; and the run is a partial success."""
    run = picture(failed("a"), decided("a", 1, "next"), NEEDS_A, NEEDS_B)
    assert [(lack.unit, lack.why, lack.failed) for lack in lacks(run)] == [
        ("a", "a failed", True),
        ("b", "needs a, which gave no result", False),
        ("c", "needs b, which gave no result", False),
    ]
    result = result_of(run, "done")
    assert (result.partial, [each.step for each in result.missing]) == (True, ["a", "b", "c"])
    assert result.as_json()["missing"][0] == {"step": "a", "what": "look", "why": "a failed"}
    assert result_of(run, "failed").partial is False


@pytest.mark.parametrize("unwanted", [UNWANTED, skipped("a", "its condition is false: x")])
def test_what_the_plan_itself_has_left_out_is_not_missing_nor_what_needed_it(unwanted: Row) -> None:
    """A false condition is no lack, wherever it leads; rows of 0.1.0 say it in words only."""
    run = picture(unwanted, NEEDS_A, NEEDS_B)
    assert lacks(run) == []
    result = result_of(run, "done")
    assert (result.partial, "partial" in result.as_json()) == (False, False)


def test_what_a_person_has_left_out_is_missing() -> None:
    """Somebody decided that a step is not done: its result is not there all the same."""
    run = picture(done("a"), skipped("b", "somebody said so", unneeded=False), NEEDS_B)
    assert [lack.unit for lack in lacks(run)] == ["b", "c"]


def test_of_a_list_the_elements_that_failed_are_missing_not_the_whole() -> None:
    """An element is named with its place; one that its own condition has left out is none."""
    three = "expansion", "c", 0, {"elements": [sha256_of(n) for n in range(3)]}
    ended = [done("c[0]"), failed("c[1]"), decided("c[1]", 1, "next"), skipped("c[2]", "its condition is false: item")]
    run = picture(done("a"), done("b"), three, *ended, failed("c"), decided("c", 1, "next"), c="${b}")
    assert [lack.unit for lack in lacks(run)] == ["c[1]"]


def test_what_a_run_did_not_come_to_is_missing_when_it_has_ended_and_not_before() -> None:
    """Of a run that goes on nothing is missing yet."""
    run = picture(failed("a"), decided("a", 1, "finish"))
    assert [each.why for each in result_of(run, "failed").missing] == ["a failed", *["the run ended before it"] * 2]
    assert result_of(run, "running").missing == ()


def test_a_line_that_finds_nothing_says_why() -> None:
    """The others are as they are; a text without a line left, and an object without a part, are no result."""
    named = {"a": {"x": 1}}
    lines = list(filled("one ${a.x}\ntwo ${a.y}\nthree ${b}", named))
    assert [line.text for line in lines] == ["one 1", None, None]
    assert [line.why for line in lines[1:]] == [
        "${a.y} finds nothing in an object with the keys x",
        "${b} names 'b', which has no result",
    ]
    assert value_of("${a.x}", named) == 1
    assert value_of("one ${a.x}\ntwo ${a.y}", named) == "one 1"
    assert value_of({"p": "${a}", "q": "${b}"}, named) == {"p": {"x": 1}}
    for nothing in ("${a.y}", "two ${a.y}", {"q": "${b}"}):
        with pytest.raises(UnresolvedReference):
            value_of(nothing, named)
