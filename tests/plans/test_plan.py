"""The contract: strict, frozen, and the same after JSON and msgpack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import ValidationError

from plans.plan import RISKS, SCHEMA_VERSION, Plan, PlanDraft, Step, StepDraft, highest_risk, referenced_steps
from plans.values import canonical
from tests.plans.sample import PLAN, names, texts, values

ROOT = Path(__file__).resolve().parents[2]

steps = st.builds(
    Step,
    id=names.map(lambda name: f"s{name}"),
    tool=st.just("get_order"),
    args=st.dictionaries(texts, values, max_size=3),
    title=st.none() | texts,
    instruction=st.none() | texts,
    for_each=st.none() | texts,
    when=st.none() | texts,
    requires=st.none() | texts,
    depends_on=st.lists(names, max_size=3).map(tuple),
    reason=texts,
    success_when=st.none() | texts,
    output_schema=st.none() | st.dictionaries(texts, values, max_size=2),
    risk=st.sampled_from(RISKS),
    require_approval=st.booleans(),
    on_dependency_failure=st.sampled_from(["abort", "skip", "degrade"]),
    timeout_s=st.none() | st.floats(0.001, 1e6),
    verify_after=st.booleans(),
)
plans = st.builds(
    Plan,
    plan_id=texts,
    revision=st.integers(1, 99),
    goal=texts,
    steps=st.lists(steps, min_size=1, max_size=4).map(tuple),
    source=st.sampled_from(["template", "model", "file", "degraded"]),
    template=st.none() | texts,
    answer=st.none() | texts,
)


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    """Written and read back it is equal, its containers are tuples again, and its values have their types."""
    for again in (
        Plan.model_validate_json(plan.model_dump_json()),
        Plan.model_validate(json.loads(json.dumps(plan.model_dump(mode="json")))),
    ):
        assert again == plan
        assert isinstance(again.steps, tuple)
        assert all(isinstance(step.depends_on, tuple) for step in again.steps)
        assert canonical([step.args for step in again.steps]) == canonical([step.args for step in plan.steps])


@given(plans)
def test_a_plan_survives_a_checkpoint(plan: Plan) -> None:
    """Through LangGraph's serialiser with these types allowed it comes back as a Plan that still validates."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=[("plans.plan", "Plan"), ("plans.plan", "Step")])
    again = serde.loads_typed(serde.dumps_typed({"plan": plan}))["plan"]
    assert type(again) is Plan
    assert Plan.model_validate(again.model_dump()) == plan
    assert again == plan
    assert {type(step) for step in again.steps} == {Step}


STRICT = """
import json, sys
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from plans.plan import Plan, PlanDraft, Step
allowed = [("plans.plan", name) for name in sys.argv[1].split()]
serde = JsonPlusSerializer(allowed_msgpack_modules=allowed)
plan = Plan.model_validate(json.loads(sys.stdin.read()))
again = serde.loads_typed(serde.dumps_typed(plan))
print(type(again).__name__, again == plan)
"""


@pytest.mark.parametrize(
    ("allowed", "came_back"), [("Plan Step PlanDraft StepDraft", "Plan True"), ("Step", "dict False")]
)
def test_in_strict_mode_only_allowed_types_come_back(allowed: str, came_back: str) -> None:
    """With strict deserialisation set before the import, a listed Plan is a Plan, another a dict."""
    found = subprocess.run(
        [sys.executable, "-c", STRICT, allowed],
        input=json.dumps(PLAN),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
    )
    assert found.stdout.strip() == came_back


@given(plans)
def test_the_draft_of_a_plan_is_what_an_author_would_have_written(plan: Plan) -> None:
    """Every field of a draft is kept, and nothing that only a stored plan has."""
    draft = plan.draft
    assert draft.model_dump() == {
        key: value for key, value in plan.model_dump().items() if key in PlanDraft.model_fields
    }
    assert {type(step) for step in draft.steps} == {StepDraft}


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"id": ""},
        {"id": "1a"},
        {"id": "a b"},
        {"id": "s1\n"},
        {"id": "s1[0]"},
        {"id": "é"},
        {"tool": None},
        {"tool": ""},
        {"action": "tool", "tool": None, "instruction": "x"},
        {"action": "llm"},
        {"action": "llm", "tool": None},
        {"action": "llm", "tool": None, "instruction": ""},
        {"depends_on": [1]},
        {"depends_on": "s1"},
        {"args": []},
        {"args": {1: 2}},
        {"timeout_s": 0},
        {"timeout_s": True},
        {"timeout_s": "1"},
        {"require_approval": 1},
        {"verify_after": "no"},
        {"risk": "LOW"},
        {"title": "x" * 201},
        {"on_dependency_failure": "retry"},
    ],
    ids=str,
)
def test_a_step_is_strict(changes: dict[str, Any]) -> None:
    """Nothing is coerced, nothing unknown is dropped, and a step has what its action needs."""
    with pytest.raises(ValidationError):
        StepDraft.model_validate({"id": "s1", "tool": "t", **changes})


def test_plans_and_steps_cannot_be_changed() -> None:
    """A change is a new revision: assignment is refused."""
    plan = Plan.model_validate(PLAN)
    for frozen, name in ((plan, "goal"), (plan.steps[0], "tool"), (plan.draft, "goal"), (plan.draft.steps[0], "id")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(frozen, name, "x")


def test_a_plan_written_by_hand_needs_only_goal_and_steps() -> None:
    """The library's `Plan(...)` takes what a plan file holds, and fills in the rest."""
    plan = Plan.model_validate(PLAN)
    assert (plan.schema_version, plan.plan_id, plan.revision, plan.source) == (SCHEMA_VERSION, "plan", 1, "human")
    assert Plan(goal="g", steps=(Step(id="a", tool="t"),), plan_id="p").step("a").risk == "low"
    assert plan.step("s2").references == ("s1",)
    with pytest.raises(KeyError):
        plan.step("s9")


def test_a_plan_has_steps_and_a_revision_from_one() -> None:
    """A stored plan is never empty."""
    for broken in ({**PLAN, "steps": []}, {**PLAN, "revision": 0}, {**PLAN, "source": "me"}, {**PLAN, "plan_id": 1}):
        with pytest.raises(ValidationError):
            Plan.model_validate(broken)


def test_the_highest_risk_wins() -> None:
    """Whoever has a say can only raise it."""
    assert highest_risk() == "low"
    assert highest_risk(None, "low") == "low"
    assert highest_risk("medium", None, "low") == "medium"
    assert highest_risk("low", "high", "medium") == "high"


def test_a_step_reads_from_its_references_and_conditions() -> None:
    """Names in order of appearance, each once; a condition that is no JMESPath names nothing."""
    step = StepDraft(
        id="s", tool="t", args={"a": "${b} ${a.x}", "c": ["${b}"]}, when="z.x == y", requires="(", success_when="q"
    )
    assert referenced_steps(step) == ("b", "a", "y", "z")
