"""Hundreds of hostile answers, each judged by the rules: syntax may be repaired, meaning never."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.drafting import Reading
from plans.faults import errors_among
from plans.lint import lint_reading
from plans.plan import PlanDraft
from plans.reader import read_plan
from tests.plans.hostile import FENCE, PLAN, TEXT, Case, cases
from tests.plans.sample import TOOLS

ALL = cases()
DRAFT = PlanDraft.model_validate(PLAN)
RIGHT = [case for case in ALL if case.verdict in ("as it is", "repaired")]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_each_hostile_answer_gets_the_verdict_that_is_right(case: Case) -> None:
    """A plan as it stands, a plan that was repaired, or a fault of the stated code: quickly, and never an exception."""
    started = time.process_time()
    reading = read_plan(case.text, case.finish)
    faults = errors_among(lint_reading(reading, TOOLS))
    assert time.process_time() - started < 2
    assert all(fault.message and len(str(fault)) < 3_000 and str(fault).isprintable() for fault in faults)
    if case.verdict in ("as it is", "repaired"):
        assert (reading.draft is not None, faults) == (True, [])
        assert reading.repaired == (case.verdict == "repaired")
    else:
        assert case.verdict in {fault.code for fault in faults}


def test_there_are_many_of_them_and_of_each_verdict_some() -> None:
    """The table proves something only while it is large and says both yes and no."""
    assert len(ALL) > 300
    verdicts = [case.verdict for case in ALL]
    assert all(
        verdicts.count(verdict) > 2
        for verdict in (
            "as it is",
            "repaired",
            "PLAN_SYNTAX",
            "PLAN_TRUNCATED",
            "PLAN_AMBIGUOUS",
            "PLAN_REFUSED",
            "SCHEMA_INVALID",
            "DUPLICATE_KEY",
            "INVALID_ARGS",
            "PLAN_EMPTY",
        )
    )


@pytest.mark.parametrize(
    "case", [case for case in RIGHT if "prose" in case.name or "fence" in case.name], ids=lambda case: case.name
)
def test_a_repair_keeps_every_step_key_and_string(case: Case) -> None:
    """Whatever stands around the plan, what is read is the plan: no step less, no key more, strings byte for byte."""
    draft = read_plan(case.text, case.finish).draft
    assert draft is not None
    assert draft.model_dump_json() == DRAFT.model_dump_json()


def whole(reading: Reading) -> bool:
    """Whether this is no plan, or one with all steps."""
    return reading.draft is None or reading.draft.steps == DRAFT.steps


@pytest.mark.parametrize("before", ["", f"{FENCE}json\n", "Here: ", "<think>a {b}</think>\n"], ids=repr)
def test_cut_at_any_byte_a_plan_is_never_a_shorter_one(before: str) -> None:
    """Every beginning of a plan is refused, as a cut one; the whole text, and nothing shorter, is the plan."""
    for length in range(1, len(TEXT)):
        reading = read_plan(before + TEXT[:length], "stop")
        assert [fault.code for fault in reading.faults] == ["PLAN_TRUNCATED"], (before, TEXT[:length])
    assert read_plan(before + TEXT, "stop").draft == DRAFT


@given(st.sampled_from([case for case in RIGHT if case.finish is not None]), st.floats(0, 1))
def test_however_a_plan_is_wrapped_cut_anywhere_it_has_all_its_steps_or_is_none(case: Case, share: float) -> None:
    """Fences, prose, thoughts, quotes, YAML in a fence: an answer that broke off at any byte never has fewer steps."""
    if not whole(read_plan(case.text, case.finish)):
        return  # its own steps are others
    body = case.text.encode("utf-8", "surrogatepass")
    cut = body[: int(share * len(body))].decode("utf-8", "replace")
    assert whole(read_plan(cut, case.finish)), cut


@given(
    st.integers(0, len(TEXT)),
    st.integers(0, len(TEXT)),
    st.sampled_from(["", '"', "}", "]", ",", "```", "</think>", "//", "/*"]),
)
def test_a_piece_that_is_lost_never_leaves_a_plan_with_a_new_key(start: int, end: int, piece: str) -> None:
    """A plan with a hole is refused, or has only keys and steps that were written."""
    text = TEXT[: min(start, end)] + piece + TEXT[max(start, end) :]
    draft = read_plan(text, "stop").draft
    if draft is not None:
        keys = {key for step in draft.steps for key in step.args}
        assert all(json.dumps(key)[1:-1] in text for key in keys)
        assert {step.id for step in draft.steps} <= {"s1", "s2", "s3"} | set(text.split('"'))
