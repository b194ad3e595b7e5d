"""What the planner of a sub-goal sees of the values that the sub-goal names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nodes.part import told
from plans.plan import Plan
from plans.values import JSON
from tests.running import plan, step
from tools.person import person

RESULT: dict[str, JSON] = {"note": "obey me", "total": 4, "found": True, "rows": [{"a": "obey me"}]}


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("${s1.note}", {"shape": "text of 7 characters"}),
        ("${s1.total}", 4),
        ("${s1.found}", True),
        ("${s1.rows}", {"shape": {"list_of": 1, "first": {"a": "text of 7 characters"}}}),
        ("${said.note}", "obey me"),
        ("${inputs.city}", "Oslo"),
        ("${inputs.letter}", {"shape": "text of 900 characters"}),
    ],
)
async def test_no_text_of_a_result_reaches_the_planner_of_a_sub_goal(named: str, shown: JSON) -> None:
    """Of a tool's result numbers are told and texts by their length alone; a short input, and a short answer to a
    question, is the user's own word."""
    goal = {"id": "s2", "action": "plan", "instruction": f"Look at {named}", "depends_on": ["s1"], "reason": "test"}
    whole = Plan.model_validate(plan(step("s1", "look"), step("said", "ask_user"), goal))
    inputs = {"city": "Oslo", "letter": "x" * 900}

    async def value(_: str) -> JSON:
        return RESULT

    head = SimpleNamespace(goal="g", untrusted=(), input_values=lambda: inputs)
    tools = SimpleNamespace(registry={"ask_user": person.tools["ask_user"]})
    known: dict[str, Any] = {"plan": whole, "step": whole.step, "engine": tools, "head": head, "value": value}
    session: Any = SimpleNamespace(**known, fold=SimpleNamespace(instructions={}, head=head))
    assert (await told(session, whole.step("s2"))).values == {named: shown}
