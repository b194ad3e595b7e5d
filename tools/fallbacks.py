"""What stands in for a tool that gave no result: a kept result, another tool, a mock, or a code to end with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from plans.failure import CODES
from plans.values import JSON

Kind = Literal["cached", "tool", "mock", "code"]
KINDS: tuple[Kind, ...] = ("cached", "tool", "mock", "code")

LONGEST_KEPT_S = 30 * 86_400.0
"""How old a kept result may at most be when it stands in: thirty days."""

NOT_TO_END_WITH = frozenset({"UNKNOWN_OUTCOME", "NEW_INSTRUCTION"})
"""Codes that no fallback ends a step with: they say that an effect is in doubt, and that a person has spoken."""


class Given(BaseModel):
    """A mock whose value is written down, not built from the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: JSON


class Fallback(BaseModel):
    """One entry of `fallbacks`; it names exactly one of four. The entries are tried in their order.

    - `cached`: the last good result of the same question, at most so many seconds old; only for reads.
    - `tool`: another tool. `args` maps its arguments to JMESPath over the original ones; None hands over those that it
      knows by the same name. A name alone means the same.
    - `mock`: True builds the least value that the declared result allows, `{"value": ...}` is that value. Only for
      reads, and marked as a mock wherever it goes.
    - `code`: the step ends with this failure code, and what follows is what follows that code.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cached: Annotated[float, Field(gt=0, le=LONGEST_KEPT_S, allow_inf_nan=False, strict=True)] | None = None
    tool: str | None = None
    args: dict[str, str] | None = None
    mock: Literal[True] | Given | None = None
    code: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, declared: Any) -> Any:
        return {"tool": declared} if isinstance(declared, str) else declared

    @model_validator(mode="after")
    def _one_kind(self) -> Fallback:
        named = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(named) != 1:
            said = f"names {' and '.join(named)}" if named else "names nothing"
            raise ValueError(f"{said}; a fallback is one of cached, tool, mock and code")
        if self.args is not None and self.tool is None:
            raise ValueError(f"has args beside {named[0]}; only another tool takes arguments")
        if self.code is not None and (self.code not in CODES or self.code in NOT_TO_END_WITH):
            allowed = ", ".join(code for code in CODES if code not in NOT_TO_END_WITH)
            raise ValueError(f"names the code {self.code!r}; a step can end with {allowed}")
        return self

    @model_serializer(mode="wrap")
    def _only_what_is_named(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}

    @property
    def kind(self) -> Kind:
        """Which of the four it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)


def labelled(fallbacks: Sequence[Fallback]) -> Mapping[str, Fallback]:
    """The fallbacks by the names that verdicts and the journal give them, in their order. Another tool has its own
    name, which no other kind can have; what stands there again is numbered."""
    found: dict[str, Fallback] = {}
    for fallback in fallbacks:
        label, times = _label(fallback), 1
        while label in found:
            times += 1
            label = f"{_label(fallback)} #{times}"
        found[label] = fallback
    return found


def _label(fallback: Fallback) -> str:
    if fallback.tool is not None:
        return fallback.tool
    return f"code {fallback.code}" if fallback.code is not None else f"{fallback.kind} result"


def longest_kept_s(fallbacks: Sequence[Fallback]) -> float:
    """How long results have to be kept for these fallbacks, in seconds; 0.0 where none of them wants that."""
    return max((fallback.cached for fallback in fallbacks if fallback.cached is not None), default=0.0)
