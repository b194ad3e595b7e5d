"""Failures as values: every code, its class, the action a run may take, and the verdict it leads to first.

The table is total: each code a tool, a model or the engine can give stands in it once, and one spelling is used in
state, Studio, command line and docs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

FailureClass = Literal["hard", "soft", "semantic", "unknown", "policy", "limit"]
Action = Literal[
    "retry_immediately", "retry_with_backoff", "use_cache_fallback", "switch_to_alternative_tool",
    "escalate_to_human", "abort_and_notify", "skip_and_continue",
]  # fmt: skip
VerdictName = Literal["next", "retry", "fallback", "local_replan", "global_replan", "ask", "finish"]


class CodeRow(NamedTuple):
    """What one failure code means for the run."""

    class_: FailureClass
    action: Action
    verdict: VerdictName


_HARD = CodeRow("hard", "switch_to_alternative_tool", "local_replan")
_SOFT = CodeRow("soft", "retry_with_backoff", "retry")
_SEMANTIC = CodeRow("semantic", "escalate_to_human", "global_replan")
_POLICY = CodeRow("policy", "skip_and_continue", "finish")
_LIMIT = CodeRow("limit", "abort_and_notify", "finish")

CODES: Mapping[str, CodeRow] = MappingProxyType(
    {
        "NOT_FOUND": _HARD,
        "NOT_PERMITTED": _HARD,
        "INVALID_ARGS": _HARD,
        "INVALID_INPUT": _HARD,
        "RULE_VIOLATED": _HARD,
        "UNRESOLVED_REFERENCE": _HARD,
        "OUTPUT_INVALID": _HARD,
        "OUTPUT_EMPTY": _HARD,
        "TOOL_ERROR": _HARD,
        "RESOURCE_LIMIT": _HARD,
        "REPEATED_FAILURE": CodeRow("hard", "switch_to_alternative_tool", "fallback"),
        "MODEL_ANSWER_INVALID": _HARD,
        "MODEL_REFUSED": _HARD,
        "MODEL_NOT_CONFIGURED": CodeRow("hard", "abort_and_notify", "finish"),
        "PLAN_INVALID": CodeRow("hard", "abort_and_notify", "finish"),
        "TIMEOUT": _SOFT,
        "RATE_LIMITED": _SOFT,
        "UNAVAILABLE": _SOFT,
        "CONFLICT": CodeRow("soft", "retry_immediately", "retry"),
        "BREAKER_OPEN": CodeRow("soft", "use_cache_fallback", "fallback"),
        "POOL_FULL": _SOFT,
        "CRITERION_FALSE": _SEMANTIC,
        "PREMISE_BROKEN": _SEMANTIC,
        "INPUT_CHANGED": _SEMANTIC,
        "PRECONDITION_FAILED": _SEMANTIC,
        "NEW_INSTRUCTION": _SEMANTIC,
        "ANSWERED": _SEMANTIC,
        "UNKNOWN_OUTCOME": CodeRow("unknown", "escalate_to_human", "ask"),
        "REJECTED": _POLICY,
        "APPROVAL_EXPIRED": _POLICY,
        "REPEATED_EFFECT": _POLICY,
        "TOOL_DISABLED": CodeRow("policy", "switch_to_alternative_tool", "fallback"),
        "LIMIT_STEPS": _LIMIT,
        "LIMIT_ATTEMPTS": _LIMIT,
        "LIMIT_REPLANS": _LIMIT,
        "LIMIT_TIME": _LIMIT,
        "LIMIT_TOKENS": _LIMIT,
        "LIMIT_COST": _LIMIT,
        "NO_PROGRESS": _LIMIT,
    }
)


class Failure(BaseModel):
    """How an attempt ended when it did not end well. `delay_s` is the least wait before another try, in seconds;
    `raw_ref` names the artifact that holds the raw error text, which stands nowhere else. `cause` is the code of what
    had failed before, of a failure that says just that."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    message: str
    step_id: str | None = None
    tool: str | None = None
    attempt: int = 0
    delay_s: float | None = None
    raw_ref: str | None = None
    cause: str | None = None

    @property
    def class_(self) -> FailureClass:
        """The class of the code."""
        return CODES[self.code].class_

    @property
    def suggested_action(self) -> Action:
        """What the run may do about it."""
        return CODES[self.code].action

    def for_model(self) -> dict[str, str | float | None]:
        """All that a model may see of a failure."""
        return {
            "code": self.code,
            "message": self.message,
            "suggested_action": self.suggested_action,
            "delay_s": self.delay_s,
        }


class ToolFailure(Exception):
    """Raised by a tool for a failure it knows. `code` is one of CODES; the message is a plain sentence for people."""

    def __init__(self, code: str, message: str, *, delay_s: float | None = None) -> None:
        if code not in CODES:
            raise ValueError(f"unknown failure code {code!r}; known: {', '.join(CODES)}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.delay_s = delay_s
