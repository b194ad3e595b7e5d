"""Tests of what a run has tried in vain and how often it has gone in a circle: folds of rows, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from nodes.admit import Facts, Refuse, Run, admit
from nodes.fold import RunFold, fold
from plans.limits import Limits
from plans.sameness import same_call
from tests.nodes.rows import Row, a_plan, a_step, begun, decided, failed, planned
from tools.registry import Registry, Toolkit

kit = Toolkit("shop")


@kit.tool(effect="read")
def look(item: str) -> str:
    """Look."""
    return item


TOOLS = dict(Registry.of(kit))


def gave(unit: str, call: str, result: str) -> Row:
    """A call has given this."""
    return "outcome", unit, 1, {"output": {"output_ref": f"sha256-{result}", "size": 1}, "call": call}


def rounds(*results: Sequence[tuple[str, str]]) -> list[Row]:
    """For each revision what its calls gave: a step per call."""
    rows: list[Row] = [begun(Limits(max_repeats=3))]
    known = []
    for number, calls in enumerate(results, 1):
        own = [a_step(f"r{number}x{place}") for place in range(len(calls))]
        known += own
        rows.append(planned(a_plan(*(known or [a_step("none")]), revision=number)))
        rows += [gave(step.id, call, result) for step, (call, result) in zip(own, calls, strict=True)]
    return rows


A = same_call("look", {"item": "ball"})


def times(picture: RunFold) -> int:
    """How often the call had led nowhere when the next revision makes it."""
    return picture.progress.times(A, (picture.plan.revision if picture.plan else 0) + 1)


def test_the_same_call_with_the_same_result_counts_once_per_revision() -> None:
    """Three revisions that ask the same and hear the same are three; twice within one plan is once."""
    assert times(fold(rounds([(A, "x"), (A, "x")]))) == 1
    assert times(fold(rounds([(A, "x")], [(A, "x")], [(A, "x")]))) == 3


def test_anything_new_makes_repetition_progress() -> None:
    """Another result of the call, or any call that was never made; other words of a model for the same are not new."""
    assert times(fold(rounds([(A, "x")], [(A, "x")], [(A, "y")]))) == 1
    assert times(fold(rounds([(A, "x")], [(A, "x"), ("other|1", "z")], [(A, "x")]))) == 2
    assert times(fold(rounds([(A, "x"), ("llm|1", "p")], [(A, "x"), ("llm|1", "q")], [(A, "x"), ("llm|1", "r")]))) == 3


def test_a_word_from_outside_makes_everything_worth_another_try() -> None:
    """After an instruction, or when inputs have changed, nothing counts as tried; how many steps there were does."""
    rows = rounds([(A, "x")], [(A, "x")])
    said = decided("", -1, "global_replan", "NEW_INSTRUCTION")
    said = (*said[:3], {**said[3], "instruction": "i1"})
    assert times(fold([*rows, said])) == 0
    assert times(fold([*rows, ("inputs", None, 0, {"files": {}})])) == 0


def test_a_call_that_leads_nowhere_is_refused_and_may_be_made_under_a_higher_limit() -> None:
    """The fourth plan that asks the same is stopped at the call; a revision's own second call never is."""
    rows = rounds([(A, "x")], [(A, "x")], [(A, "x")])
    step = a_step("s", args={"item": " ball"})
    picture = fold([*rows, planned(a_plan(step, revision=4))])
    known = Facts(unit="s", named={"inputs": {}}, tool=TOOLS["look"])
    refused = admit(step, picture, known)
    assert isinstance(refused, Refuse)
    assert (refused.failure.code, refused.hit and refused.hit.limit) == ("NO_PROGRESS", "max_repeats")
    assert isinstance(admit(step, fold([*rows, planned(a_plan(step, revision=3))]), known), Run)
    raised = fold([*rows, planned(a_plan(step, revision=4)), ("reopened", None, 0, {"limits": {"max_repeats": 4}})])
    assert isinstance(admit(step, raised, known), Run)


def test_steps_that_failed_and_are_gone_are_remembered_by_what_they_did() -> None:
    """With what came of them, and counted; a step that never began is neither."""
    step, other = a_step("s", args={"item": "ball"}), a_step("t", args={"item": "cup"})
    rows = [begun(), planned(a_plan(step, other)), failed("s", code="NOT_FOUND"), decided("s", 1, "local_replan")]
    picture = fold([*rows, planned(a_plan(a_step("s", args={"item": "box"})), "local", ["s#1"])])
    assert list(picture.progress.failed.values()) == ["s: s failed"]
    assert picture.progress.gone == 1


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=3), max_size=5), st.data())
def test_where_a_run_is_killed_makes_no_difference(story: list[list[tuple[str, str]]], data: st.DataObject) -> None:
    """Rows read back up to any moment, and the rest applied on top, count as all of them read at once."""
    rows = rounds(*story)
    cut = data.draw(st.integers(0, len(rows)))
    picture = fold(rows[:cut])
    for kind, step_id, attempt, body in rows[cut:]:
        picture.apply(kind, step_id, attempt, body)
    whole = fold(rows)
    assert (picture.progress, picture.usage) == (whole.progress, whole.usage)
