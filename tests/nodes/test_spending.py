"""Laws of what a run has spent, on rows: nothing is forgotten, and a kill makes nothing cheaper."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.fold import fold
from nodes.fold_spending import settled_usage
from plans.caps import Bill, question_hit
from plans.limits import Limits, Usage
from tests.nodes.rows import Row, a_plan, a_step, begun, decided, done, failed, planned, refused

tokens = st.integers(0, 50)


def reserved(key: int, asked: int, answered: int) -> Row:
    """A question is about to be put."""
    return "reservation", None, 0, {"key": str(key), "prompt_tokens": asked, "completion_tokens": answered, "cost": 0.5}


def answered(key: int, asked: int, given_: int) -> Row:
    """It has been answered."""
    spent = {"prompt_tokens": asked, "completion_tokens": given_, "cost": 0.25, "model_requests": 1}
    return "model", None, 0, {"key": str(key), "text_ref": "x", **spent}


@st.composite
def stories(draw: st.DrawFn) -> list[Row]:
    """Questions put and answered in any order, among steps that give and fail; some are never answered."""
    rows: list[Row] = []
    for key in range(draw(st.integers(0, 6))):
        asked, most = draw(tokens), draw(tokens)
        rows.append(reserved(key, asked, most))
        if draw(st.booleans()):
            place = draw(st.integers(len(rows), len(rows) + 2))
            rows.insert(place, answered(key, asked, draw(st.integers(0, most))))
    steps = [a_step(f"s{number}") for number in range(3)]
    ends: list[Row] = [done("s0"), failed("s1"), refused("s2")]
    return [begun(), planned(a_plan(*steps)), *rows, *draw(st.permutations(ends))]


def counts(usage: Usage) -> dict[str, Any]:
    """What is only ever counted up."""
    return usage.model_dump(include={"steps", "attempts", "cached", "model_calls", "model_requests", "local_replans"})


@given(stories())
def test_what_is_spent_for_certain_never_goes_down(rows: list[Row]) -> None:
    """Row by row: counts, settled tokens and settled cost; and what counts against a limit is never less than that."""
    picture = fold(rows[:1])
    for kind, step_id, attempt, body in rows[1:]:
        before, settled = counts(picture.usage), settled_usage(picture)
        picture.apply(kind, step_id, attempt, body)
        after = settled_usage(picture)
        assert all(counts(picture.usage)[name] >= amount for name, amount in before.items())
        assert (after.tokens, after.cost) >= (settled.tokens, settled.cost)
        assert (picture.usage.tokens, picture.usage.cost) >= (after.tokens, after.cost)


@given(stories(), st.data())
def test_a_kill_makes_nothing_cheaper(rows: list[Row], data: st.DataObject) -> None:
    """Where the process dies between a question and its answer, and asks again, the run has spent at least as much as
    without; and a question that did not fit before still does not."""
    questions = [place for place, row in enumerate(rows) if row[0] == "reservation"]
    if not questions:
        return
    killed = data.draw(st.sampled_from(questions)) + 1
    again = [rows[killed - 1], *rows[killed:]]
    usual, other = fold(rows).usage, fold([*rows[:killed], *again]).usage
    assert other.tokens >= usual.tokens
    assert other.model_calls == usual.model_calls + 1
    cap = Limits(max_tokens=data.draw(st.integers(1, 200)))
    bill = Bill(completion_tokens=data.draw(tokens))
    assert question_hit(cap, usual, bill) is None or question_hit(cap, other, bill) is not None


def test_the_rows_of_a_repair_count_whoever_reads_them() -> None:
    """Repairs are counted by their verdicts, so that one whose process dies counts too."""
    rows = [begun(), planned(a_plan(a_step("s"))), failed("s", code="NOT_FOUND"), decided("s", 1, "local_replan")]
    assert fold(rows).usage.local_replans == 1
