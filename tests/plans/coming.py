"""A version of the plan contract that may come, and what workers know of it: for the tests of versions that meet.

It gives a step's title a place of its own, where version 1 has it in brackets before the reason; and it can have a plan
checked after a step, for which version 1 has no words.
"""

from __future__ import annotations

import re
from typing import Any

from plans.values import JSON
from plans.versions import PLAN_VERSIONS, CannotSay, PlanVersions

_TITLED = re.compile(r"\[([^\[\]]*)\] (.*)", re.DOTALL)


def up(plan: dict[str, JSON]) -> dict[str, JSON]:
    """Version 2 of a plan of version 1."""
    return {**plan, "steps": [_up(step) for step in _steps(plan)]}


def down(plan: dict[str, JSON]) -> dict[str, JSON]:
    """Version 1 of a plan of version 2."""
    return {**plan, "steps": [_down(step) for step in _steps(plan)]}


def _steps(plan: dict[str, JSON]) -> list[dict[str, Any]]:
    steps = plan["steps"]
    assert isinstance(steps, list)
    return [dict(step) for step in steps if isinstance(step, dict)]


def _up(step: dict[str, Any]) -> dict[str, Any]:
    found = _TITLED.fullmatch(step["reason"])
    title, reason = found.groups() if found else (None, step["reason"])
    return {**step, "title": title, "reason": reason}


def _down(step: dict[str, Any]) -> dict[str, Any]:
    if step.get("verify_after"):
        raise CannotSay(f"step {step['id']} has verify_after")
    title = step["title"]
    return step if title is None else {**step, "title": None, "reason": f"[{title}] {step['reason']}"}


OLD = PLAN_VERSIONS
"""A worker of today."""
NEW = PlanVersions(newest=2, upgrades={1: up}, downgrades={2: down})
"""One of the release that brings version 2."""
LATER = PlanVersions(newest=2, upgrades={1: up}, downgrades={})
"""One of a release after that: nobody of version 1 is left, it says."""
KNOWN = {"old": OLD, "new": NEW, "later": LATER}
