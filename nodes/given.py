"""A plan that a caller brings along: read like any other, strictly, and with every fault told at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plans.errors import PlanRejected
from plans.faults import Fault, errors_among
from plans.plan import Plan, PlanDraft
from plans.reader import read_plan


def given_draft(given: Plan | PlanDraft | Mapping[str, Any] | str) -> PlanDraft:
    """The draft in a plan, a mapping or a text (JSON or YAML). Raises PlanRejected with all its faults."""
    if isinstance(given, Plan):
        return given.draft
    if isinstance(given, PlanDraft):
        return given
    if not isinstance(given, str):
        try:
            given = json.dumps(given, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise PlanRejected(f"the plan is not JSON: {error}") from None
    reading = read_plan(given)
    errors = errors_among(reading.faults)
    if reading.draft is None or errors:
        raise rejected(errors)
    return reading.draft


def rejected(faults: list[Fault]) -> PlanRejected:
    """The error that tells every fault of a plan."""
    listed = "\n".join(f"  - {fault}" for fault in faults)
    return PlanRejected(f"the plan cannot run; {len(faults)} fault{'s' * (len(faults) != 1)}:\n{listed}", faults)
