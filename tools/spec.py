"""What a tool declares about itself: its effect, its risk, and how a call of it is safeguarded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from tools.declared import Declared
from tools.fallbacks import Fallback
from tools.named_rules import Rule

Effect = Literal["read", "transactional", "idempotent", "irreversible"]
Risk = Literal["low", "medium", "high"]
Isolation = Literal["async", "thread", "process"]
LimitScope = Literal["process", "workers"]

EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""From the weakest to the strongest."""
RISKS: tuple[Risk, ...] = get_args(Risk)
"""From the lowest to the highest."""
LEAST_ASSUMED: Effect = "irreversible"
"""The effect of a tool that declares none: nothing is repeated that might not bear it."""
RETRIED_EFFECTS = frozenset({"read", "idempotent"})
"""Effects that a second call of the same attempt cannot double."""

MOST_REPEATS = 100
"""So many failures of one call are remembered at most."""

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]

_RISKY_WORDS = frozenset(
    {
        "refund", "refunds", "cancel", "cancels", "cancellation", "delete", "deletes", "deletion",
        "pay", "pays", "payment", "payments",
    }
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Retry(Declared):
    """Transport retries within one attempt of a step. `max_attempts` counts the first call; a wait is
    min(initial_interval * backoff_factor ** n, max_interval) plus up to `jitter`, all in seconds."""

    max_attempts: int = Field(3, ge=1, le=20)
    initial_interval: float = Field(0.5, ge=0, le=3_600)
    backoff_factor: float = Field(2.0, ge=1, le=100)
    max_interval: float = Field(30.0, ge=0, le=3_600)
    jitter: float = Field(0.1, ge=0, le=60)

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.max_interval < self.initial_interval:
            raise ValueError(
                f"max_interval {self.max_interval:g} is less than initial_interval {self.initial_interval:g}"
            )
        return self


NO_RETRY = Retry(max_attempts=1)


class BreakerPolicy(Declared):
    """When calls of a failing tool stop: of the last `window` calls (once there are `min_calls`) more than
    `failure_rate` failed, or `in_a_row` failed one after the other. After `cooldown_s` one call probes."""

    window: int = Field(10, ge=1, le=1_000)
    min_calls: int = Field(5, ge=1)
    failure_rate: float = Field(0.4, ge=0, lt=1)
    in_a_row: int = Field(3, ge=1)
    cooldown_s: Seconds = 60.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """More calls than the window holds are never seen: such a breaker would never open."""
        for name, calls in (("min_calls", self.min_calls), ("in_a_row", self.in_a_row)):
            if calls > self.window:
                raise ValueError(f"{name} {calls} is more than the {self.window} calls of its window")
        return self


class RateLimit(Declared):
    """At most `calls` starts in any `per_s` seconds, over all runs of a process, or of all workers (`limit_scope`)."""

    calls: int = Field(ge=1)
    per_s: Seconds = 1.0


class Repeats(Declared):
    """A call whose last `failures` attempts with the same arguments all failed within `within_s` seconds is not made
    again before the oldest of them is that old."""

    failures: int = Field(3, ge=1, le=MOST_REPEATS)
    within_s: Seconds = 300.0


FlagCode = Literal[
    "TOOL_ERROR", "NOT_FOUND", "NOT_PERMITTED", "INVALID_ARGS", "INVALID_INPUT", "RULE_VIOLATED", "PRECONDITION_FAILED",
    "OUTPUT_INVALID", "OUTPUT_EMPTY", "TIMEOUT", "RATE_LIMITED", "UNAVAILABLE", "CONFLICT",
]  # fmt: skip


class ErrorFlag(Declared):
    """How a result says that the tool failed although it returned, as HTTP 200 with an error body: `when`, a JMESPath
    condition over the result, is true. It leads to a failure with this `code`; `message` is the sentence, and
    `message_from` finds the result's own words in it (JMESPath). `certain` promises that an effect has then not
    happened; without it, that of an irreversible tool is unknown."""

    when: str
    code: FlagCode = "TOOL_ERROR"
    message: str | None = Field(None, min_length=1, max_length=300)
    message_from: str | None = None
    certain: bool = False

    @model_validator(mode="before")
    @classmethod
    def _from_condition(cls, declared: Any) -> Any:
        return {"when": declared} if isinstance(declared, str) else declared


class ToolSpec(Declared):
    """Everything declared about one tool. Two declarations depend on others when left out: `risk` is low, or high
    where the name says so (never lower, unless the tool only reads), and `retry` is none where a repeated call
    could double an effect.

    `timeout_s` bounds each call: 8 by default; customary are 2 for a database, 15 for an external API, 30 for finance,
    60 for files. `roles` empty means everyone. `sensitive_args` are the arguments that text of strangers may not fill
    unasked (None: by their names, `tools/sensitive.py`). `identity_args` are the arguments that make two effects the
    same one (None: all). `never_empty` makes an empty result a failure: True the whole, JMESPath that part of it;
    `error_when` (one condition, one ErrorFlag or several) one that says of itself that the tool failed. A `critical`
    tool gets one attempt per step. `secret_args` are arguments whose value stands nowhere but in the call, beside those
    whose names or types say so (`tools/secret_arguments.py`). `to_configure` says, as a whole sentence, what a person
    has to set before the tool can be called; None: nothing. `limit_scope` says over whose calls `concurrency` and
    `rate_limit` count: those of this process, or of all workers on its database. `repeats` None calls again what failed
    again and again: for reads that poll and fail until it is time.

    A tool that is the `shadow_of` another is a candidate for its place: it is called beside the other, for the share
    `shadow_share` of its calls, and compared by `shadow_compare` (JMESPath over both results; None: the whole).
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = ""
    effect: Effect = LEAST_ASSUMED
    risk: Risk = "low"
    timeout_s: Seconds = 8.0
    retry: Retry = Retry()
    breaker: BreakerPolicy = BreakerPolicy()
    rate_limit: RateLimit | None = None
    concurrency: int | None = Field(None, ge=1)
    limit_scope: LimitScope = "process"
    repeats: Repeats | None = Repeats()
    cache_ttl_s: Seconds | None = None
    fallbacks: tuple[Fallback, ...] = ()
    roles: tuple[str, ...] = ()
    output_trust: Literal["trusted", "untrusted"] = "untrusted"
    sensitive_args: tuple[str, ...] | None = None
    secret_args: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    isolation: Isolation = "async"
    version: str = Field("1", min_length=1)
    identity_args: tuple[str, ...] | None = None
    never_empty: bool | Annotated[str, Field(min_length=1)] = False
    error_when: tuple[ErrorFlag, ...] = ()
    critical: bool = False
    shadow_of: str | None = None
    shadow_compare: str | None = None
    shadow_share: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    owner: str | None = None
    to_configure: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _left_out(cls, declared: Any) -> Any:
        if not isinstance(declared, Mapping):
            return declared
        effect = declared.get("effect", LEAST_ASSUMED)
        retry = Retry() if effect in RETRIED_EFFECTS else NO_RETRY
        risk = at_least(declared.get("risk", "low"), floor_of(str(declared.get("name", "")), effect))
        return {"retry": retry, **declared, "risk": risk}

    @field_validator("error_when", mode="before")
    @classmethod
    def _one_flag(cls, declared: Any) -> Any:
        return (declared,) if isinstance(declared, str | Mapping | ErrorFlag) else declared

    def changed(self, changes: Mapping[str, Any]) -> ToolSpec:
        """This spec with some fields replaced and checked again; ValidationError for what makes no sense."""
        return ToolSpec.model_validate({**self.model_dump(), **changes}, strict=True)


def floor_of(name: str, effect: str) -> Risk:
    """The least risk of a tool by its name: high where a word of it says refund, cancel, delete or pay, in snake,
    camel or kebab case, unless the tool only reads."""
    words = {word.lower() for word in _WORD.findall(name)}
    return "high" if effect != "read" and words & _RISKY_WORDS else "low"


def at_least(risk: Any, floor: Risk) -> Any:
    """The higher of the two; what is no risk is left as it is, to be refused."""
    if risk not in RISKS:
        return risk
    return max(risk, floor, key=RISKS.index)
