"""Examples that a toolkit gives planners: a goal, and the plan that serves it. Checked like any plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plans.values import JSON

if TYPE_CHECKING:
    from tools.tool import Tool

_OF_THE_DAY = frozenset({"TOOL_UNAVAILABLE", "NOT_PERMITTED"})
"""What may be wrong with a plan today and not tomorrow."""


@dataclass(frozen=True, slots=True)
class Example:
    """One goal, and a plan for it as its author writes it; `tools` are those that it calls."""

    goal: str
    plan: Mapping[str, JSON]
    tools: frozenset[str]

    @classmethod
    def of(cls, goal: str, plan: Mapping[str, Any]) -> Example:
        """The plan's own goal is this one, unless it says another."""
        steps = [step for step in plan.get("steps", ()) if isinstance(step, Mapping)]
        return cls(goal, {"goal": goal, **plan}, frozenset(str(step["tool"]) for step in steps if step.get("tool")))


def example_faults(toolkit: str, examples: Iterable[Example], tools: Mapping[str, Tool]) -> Iterator[str]:
    """What is wrong with each plan: models would learn it."""
    from plans.faults import errors_among
    from plans.lint import lint_reading
    from plans.reader import read_plan

    for example in examples:
        try:
            text = json.dumps(example.plan)
        except (TypeError, ValueError) as error:
            yield f"the example {example.goal!r} of toolkit {toolkit!r} is no JSON: {error}"
            continue
        found = errors_among(lint_reading(read_plan(text), tools, inputs=None))
        for fault in found:
            if fault.code not in _OF_THE_DAY:
                yield f"the example {example.goal!r} of toolkit {toolkit!r}: {fault}"
