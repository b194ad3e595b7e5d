"""The judgement of a plan's text, without a database, a model or LangGraph: quick enough for an editor or a hook."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from nodes.secret_faults import secret_faults
from plans.faults import Fault, errors_among
from plans.limits import Limits
from plans.lint import DEFAULT_LIMITS, build_plan, lint_reading
from plans.placeholders import placeholder
from plans.reader import read_plan
from plans.values import JSON
from tools.vault import NAMED

if TYPE_CHECKING:
    from tools.registry import Registry


class Validation(BaseModel):
    """Every fault at once. `repaired` says that the text was not the plan as it stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    valid: bool
    repaired: bool
    faults: tuple[Fault, ...]
    plan: dict[str, Any] | None


def unreadable(message: str) -> Validation:
    """The verdict on what holds no text at all."""
    return Validation(valid=False, repaired=False, faults=(Fault(code="PLAN_SYNTAX", message=message),), plan=None)


def validation(
    registry: Registry,
    text: str,
    finish_reason: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    secrets: Collection[str] = (),
) -> Validation:
    """Every fault of a plan's text, and the plan it gives if it has none. Any input counts as given, and as no secret;
    `secrets` are the names of those that the settings have."""
    reading = read_plan(text, finish_reason)
    faults = lint_reading(reading, registry, inputs=None, limits=limits)
    if reading.draft is not None:
        known: dict[str, JSON] = {name: placeholder(f"{NAMED}{name}", "", b"") for name in secrets}
        faults += secret_faults(reading.draft.steps, registry, {"inputs": {}, "secrets": known})
    plan: dict[str, Any] | None = None
    if reading.draft is not None and not errors_among(faults):
        built = build_plan(reading.draft, registry, plan_id="validated", revision=1, source="file")
        plan = built.model_dump(mode="json")
    return Validation(valid=plan is not None, repaired=reading.repaired, faults=tuple(faults), plan=plan)
