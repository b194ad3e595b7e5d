"""What tests of plans share: three tools, a plan that is right, and values to try things with."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from plans.plan import PlanDraft, Risk
from plans.values import JSON, Path, dotted

ORDER: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "note": {"anyOf": [{"$ref": "#/$defs/Line"}, {"type": "null"}]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}}},
}


@dataclass(frozen=True)
class Tool:
    """A tool as planning sees it: argument names with the type each must have."""

    name: str
    takes: Mapping[str, type] = field(default_factory=dict)
    effect: str = "read"
    risk: Risk = "low"
    enabled: bool = True
    to_configure: str | None = None
    output_schema: dict[str, JSON] | None = None
    timeout_s: float = 8.0
    can_undo: bool = False
    a_second: int | None = None

    def least_s(self, calls: int) -> float:
        """So many calls, with so many a second."""
        return (calls - 1) // self.a_second if self.a_second else 0.0

    def check_args(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[tuple[str, str]]:
        """Missing, unknown and wrongly typed arguments; what a reference fills is not looked at."""
        found = [(name, "is missing") for name in self.takes if name not in args]
        for name, value in args.items():
            if name not in self.takes:
                found.append((name, "is not an argument"))
            elif (name,) not in references and not isinstance(value, self.takes[name]):
                found.append((dotted((name,)), f"should be {self.takes[name].__name__}"))
        return found

    def breaches(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[tuple[str, str]]:
        """It has no rules."""
        return []


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("get_order", {"order_id": str}, output_schema=ORDER),
        Tool("list_orders", {"status": str, "limit": int}),
        Tool("send_reply", {"order_id": str, "body": str}, effect="irreversible", risk="high"),
        Tool("retired", {}, enabled=False),
    )
}

PLAN: dict[str, Any] = {
    "goal": "g",
    "steps": [
        {
            "id": "s1",
            "action": "tool",
            "tool": "get_order",
            "args": {"order_id": "A1"},
            "depends_on": [],
            "reason": "r",
        },
        {
            "id": "s2",
            "action": "tool",
            "tool": "send_reply",
            "args": {"order_id": "${s1.id}", "body": "hi"},
            "depends_on": ["s1"],
            "reason": "r",
        },
    ],
}
TEXT = json.dumps(PLAN)
DRAFT = PlanDraft.model_validate(PLAN)


def plan(**changes: JSON) -> dict[str, Any]:
    """The right plan with other top-level fields."""
    return {**copy.deepcopy(PLAN), **changes}


def with_step(index: int = 0, /, **changes: JSON) -> dict[str, Any]:
    """The right plan with other fields in one step; None leaves the field out."""
    changed = copy.deepcopy(PLAN)
    step = {**changed["steps"][index], **changes}
    changed["steps"][index] = {name: value for name, value in step.items() if value is not None}
    return changed


def of_steps(*steps: dict[str, JSON], **fields: JSON) -> PlanDraft:
    """A draft of these steps; a step without a tool looks an order up."""
    filled = [{"tool": "get_order", "args": {"order_id": "A1"}, **step} for step in steps]
    return PlanDraft.model_validate({"goal": "g", "steps": filled, **fields})


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
