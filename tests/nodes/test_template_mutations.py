"""Whatever is done to a shipped template's plan: it is valid still, or what is wrong is said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.nodes.test_templates import EXAMPLES, REGISTRY, inputs_of, plan_for
from tests.plans.test_mutations import judged, mutated

PLANS: list[Any] = [
    plan_for(example.goal, inputs_of(example)).model_dump(mode="json", exclude_defaults=True) for _, example in EXAMPLES
]


@given(st.data())
def test_a_template_s_plan_changed_anywhere_is_valid_or_reported(data: st.DataObject) -> None:
    """With the real tools, their schemas and their rules: never an exception."""
    judged(json.dumps(data.draw(mutated(data.draw(st.sampled_from(PLANS))))), REGISTRY)
