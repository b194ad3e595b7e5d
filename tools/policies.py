"""Which tools of a foreign source may be used, and what our configuration declares for each: the same words for all."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plans.wording import nearest
from tools.spec import ToolSpec

_OURS = frozenset({"isolation", "to_configure"})
"""Fields of a spec that follow from what a tool is, so that nobody sets them."""
_OF_ONE = frozenset({"name", "description", "version"})
"""What can be said of one tool, and not of all at once."""


class Policies(BaseModel):
    """`only` and `without` choose among the tools; `tools` says by name what a ToolSpec declares, `every` the same for
    all. `beside` names what a kind of source lets be said there too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    beside: ClassVar[frozenset[str]] = frozenset()

    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    every: dict[str, Any] = Field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("every")
    @classmethod
    def _known_for_all(cls, value: dict[str, Any]) -> dict[str, Any]:
        cls._refuse_unknown(value, _OURS | _OF_ONE)
        return value

    @field_validator("tools")
    @classmethod
    def _known_for_each(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for policy in value.values():
            cls._refuse_unknown(policy, _OURS)
        return value

    @classmethod
    def _refuse_unknown(cls, policy: dict[str, Any], refused: frozenset[str]) -> None:
        known = [name for name in (*ToolSpec.model_fields, *sorted(cls.beside)) if name not in refused]
        for name in policy:
            if name not in known:
                close = nearest(name, known)
                hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
                raise ValueError(f"a tool has no setting {name!r} here; {hint}")
