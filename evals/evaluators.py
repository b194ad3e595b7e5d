"""How good a plan is, as numbers between 0 and 1. Steps are matched by tool, never by id: relabelling changes nothing.

Tools count as multisets (a set would miss a doubled step) and order by what the plan's edges imply, not by how its
steps are listed, so any topological shuffling leaves every measure as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from evals.dataset import Expected
from plans.plan import Plan
from plans.schedule import descendants, edges_of

Measure = Callable[[Plan | None, Expected], float]


def validity(plan: Plan | None, _: Expected) -> float:
    """1 if there is a plan that may run, else 0."""
    return 0.0 if plan is None else 1.0


def coverage(plan: Plan | None, expected: Expected) -> float:
    """Share of the expected calls that the plan makes (multiset recall)."""
    wanted = Counter(expected.tools)
    return (wanted & _tools(plan)).total() / wanted.total()


def redundancy(plan: Plan | None, expected: Expected) -> float:
    """1 minus the share of the plan's calls that nobody asked for; 0 for no plan. Higher is better, as everywhere."""
    used = _tools(plan)
    return 0.0 if not used else (used & Counter(expected.tools)).total() / used.total()


def ordering(plan: Plan | None, expected: Expected) -> float:
    """Share of the expected pairs that the plan's edges keep, directly or through others; 1 where none is expected."""
    if plan is None:
        return 0.0
    if not expected.before:
        return 1.0
    return sum(_kept(plan, earlier, later) for earlier, later in expected.before) / len(expected.before)


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {"validity": validity, "coverage": coverage, "redundancy": redundancy, "ordering": ordering}
)
"""Every measure by name; each is higher for a better plan."""


def _tools(plan: Plan | None) -> Counter[str]:
    return Counter(step.tool for step in plan.steps if step.tool) if plan else Counter()


def _kept(plan: Plan, earlier: str, later: str) -> bool:
    """Each later call depends on some earlier one, and both are there."""
    edges = edges_of(plan.steps)
    after_earlier = {found for step in _calling(plan, earlier) for found in descendants(edges, step)}
    calls = _calling(plan, later)
    return bool(calls) and all(step in after_earlier for step in calls)


def _calling(plan: Plan, tool: str) -> Sequence[str]:
    return [step.id for step in plan.steps if step.tool == tool]
