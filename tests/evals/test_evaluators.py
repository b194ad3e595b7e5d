"""The measures of a plan: right on plans whose flaws are known, and blind to how a plan is written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.dataset import Expected
from evals.evaluators import MEASURES, coverage, ordering, redundancy, validity
from plans.plan import Plan

EXPECTED = Expected(tools=("read", "check", "write"), before=(("read", "write"), ("check", "write")))


def plan_of(*steps: tuple[str, str, tuple[str, ...]]) -> Plan:
    """A plan of (id, tool, dependencies)."""
    return Plan.model_validate(
        {"goal": "g", "steps": [{"id": i, "tool": tool, "depends_on": after} for i, tool, after in steps]}
    )


GOOD = plan_of(("a", "read", ()), ("b", "check", ("a",)), ("c", "write", ("b",)))


def test_a_plan_as_expected_scores_one_everywhere() -> None:
    """Every measure is 1.0 for the expected plan; order may hold through other steps."""
    assert {name: measure(GOOD, EXPECTED) for name, measure in MEASURES.items()} == dict.fromkeys(MEASURES, 1.0)


def test_no_plan_scores_zero_everywhere() -> None:
    """A goal without a plan counts with 0 in every measure."""
    assert {name: measure(None, EXPECTED) for name, measure in MEASURES.items()} == dict.fromkeys(MEASURES, 0.0)


@pytest.mark.parametrize(
    ("plan", "scores"),
    [
        (plan_of(("a", "read", ()), ("c", "write", ("a",))), {"coverage": 2 / 3, "redundancy": 1.0, "ordering": 0.5}),
        (
            plan_of(("a", "read", ()), ("d", "read", ()), ("b", "check", ()), ("c", "write", ("a", "b"))),
            {"coverage": 1.0, "redundancy": 3 / 4, "ordering": 1.0},
        ),
        (
            plan_of(("a", "read", ()), ("b", "check", ()), ("c", "write", ())),
            {"coverage": 1.0, "redundancy": 1.0, "ordering": 0.0},
        ),
    ],
    ids=["a step is missing", "a step is doubled", "the edges are lost"],
)
def test_each_flaw_costs_exactly_in_its_own_measure(plan: Plan, scores: dict[str, float]) -> None:
    """A missing step, a doubled step and lost edges are seen, each by the measure made for it."""
    assert validity(plan, EXPECTED) == 1.0
    found = {
        "coverage": coverage(plan, EXPECTED),
        "redundancy": redundancy(plan, EXPECTED),
        "ordering": ordering(plan, EXPECTED),
    }
    assert found == pytest.approx(scores)


@given(st.permutations(["a", "b", "c"]), st.permutations(["x1", "x2", "x3"]))
def test_relabelling_and_reordering_the_steps_changes_no_measure(order: list[str], names: list[str]) -> None:
    """Ids and the order in which steps are listed mean nothing."""
    renamed = dict(zip(["a", "b", "c"], names, strict=True))
    by_id = {step.id: step for step in GOOD.steps}
    shuffled = plan_of(
        *((renamed[i], by_id[i].tool or "", tuple(renamed[d] for d in by_id[i].depends_on)) for i in order)
    )
    assert all(measure(shuffled, EXPECTED) == 1.0 for measure in MEASURES.values())
