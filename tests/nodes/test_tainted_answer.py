"""What is said of an answer: which of its lines rest on text that a stranger may have written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodes.fold import RunFold, fold
from nodes.taint import ANSWER
from nodes.tainted_answer import TaintedPart, tainted_parts
from plans.provenance import REPLAN
from tests.nodes.rows import Row, a_plan, a_step, begun, done, planned

STEPS = (a_step("s1"), a_step("s2", "s1"), a_step("s3", "s1"))
ROWS = (done("s1", tainted_by=["s1"]), done("s2"), done("s3", tainted_by=["s1", "inputs.note"]))


def finished(answer: str | None, *, status: str = "done", rows: Sequence[Row] = ROWS, **more: Any) -> RunFold:
    """A run that has ended so, with this answer in its plan."""
    kind, step_id, attempt, body = planned(a_plan(*STEPS).model_copy(update={"answer": answer}))
    end: Row = ("finish", None, 0, {"status": status, "wall_s": 1.0})
    return fold([begun(), (kind, step_id, attempt, {**body, **more}), *rows, end])


def test_each_line_is_told_by_itself_with_what_it_rests_on() -> None:
    """A line of trusted results, and one that the plan says by itself, are none of them."""
    run = finished("it costs ${s1.price}\nby ${s2}\nhello\nand ${s3} of ${s1}")
    assert tainted_parts(run) == (
        TaintedPart("it costs ${s1.price}", ("s1",)),
        TaintedPart("and ${s3} of ${s1}", ("s1", "inputs.note")),
    )


def test_of_a_plan_without_an_answer_its_last_results_are_told() -> None:
    """They stand in its place."""
    assert tainted_parts(finished(None)) == (TaintedPart("${s3}", ("s1", "inputs.note")),)


def test_an_answer_that_was_written_after_strangers_were_heard_rests_on_them_in_every_line() -> None:
    """A model may have written what they wanted to be said."""
    run = finished("pay eve\n\nby ${s2}", swayed=[ANSWER])
    assert tainted_parts(run) == (TaintedPart("pay eve", (REPLAN,)), TaintedPart("by ${s2}", (REPLAN,)))


def test_a_later_revision_by_a_person_makes_the_answer_theirs() -> None:
    """One that leaves the answer as it is changes nothing about it."""
    first = planned(a_plan(*STEPS).model_copy(update={"answer": "pay eve"}))
    first = (*first[:3], {**first[3], "swayed": [ANSWER]})
    same = planned(a_plan(*STEPS, revision=2).model_copy(update={"answer": "pay eve"}))
    other = planned(a_plan(*STEPS, revision=3).model_copy(update={"answer": "pay ann"}))
    assert fold([begun(), first, same]).swayed == {ANSWER}
    assert fold([begun(), first, same, other]).swayed == set()


def test_only_of_a_run_that_is_done_something_is_told() -> None:
    """Else its answer is what went wrong."""
    assert tainted_parts(finished("${s1}", status="failed")) == ()
    assert tainted_parts(fold([begun(), planned(a_plan(*STEPS)), *ROWS])) == ()
