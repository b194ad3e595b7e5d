"""What can be wrong with a plan: one value per fault, with where it is and how to mend it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from plans.values import printable

FaultCode = Literal[
    "PLAN_SYNTAX", "PLAN_TRUNCATED", "PLAN_AMBIGUOUS", "PLAN_EMPTY", "PLAN_REFUSED", "SCHEMA_INVALID",
    "DUPLICATE_KEY", "DUPLICATE_STEP_ID", "UNKNOWN_TOOL", "TOOL_UNAVAILABLE", "NOT_PERMITTED", "INVALID_ARGS",
    "RULE_VIOLATED", "CYCLE", "UNKNOWN_DEPENDENCY", "UNKNOWN_REFERENCE", "MISSING_DEPENDENCY", "TOO_MANY_STEPS",
    "REPEATED_EFFECT", "NO_PROGRESS", "LIMIT_INFEASIBLE", "MODEL_NOT_CONFIGURED", "MODEL_FAILED", "INVALID_INPUT",
    "VERSION_TOO_NEW", "CHANGED_FINISHED_STEP",
    "NO_CRITERION", "UNREAD_OUTPUT", "REDUNDANT_STEP", "NO_UNDO", "UNBOUNDED_FOR_EACH", "OVER_DEADLINE",
]  # fmt: skip
Severity = Literal["error", "warning"]
MOST = 200
"""Faults that one check reports; whoever has more of a kind learns nothing from the rest."""
MAX_WORDS = 1_000
"""Longest text of a fault, in characters."""


class Fault(BaseModel):
    """One fault of a plan: `path` is its place (`steps[2].args.limit`), `fix` what would be right if that is clear.

    It quotes what strangers wrote, and goes into prompts, logs and tables: its texts are one line of bounded length.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: FaultCode
    message: str
    step: str | None = None
    path: str = ""
    severity: Severity = "error"
    fix: str | None = None

    @field_validator("message", "step", "path", "fix")
    @classmethod
    def _in_one_line(cls, text: str | None) -> str | None:
        return None if text is None else printable(" ".join(text.split()), MAX_WORDS)

    def __str__(self) -> str:
        where = f"step {self.step}: " if self.step else ""
        return f"{self.code}: {where}{self.message}" + (f" ({self.fix})" if self.fix else "")


def errors_among(faults: tuple[Fault, ...] | list[Fault]) -> list[Fault]:
    """The faults that keep a plan from running; warnings do not."""
    return [fault for fault in faults if fault.severity == "error"]
