"""What a person's no is about, whatever a later step is called and however it is written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plans.sameness import same_call
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from tools.tool import Tool


def meaning(tool: Tool | None, name: str, args: Mapping[str, JSON]) -> str:
    """A name that all calls have which would do the same: with a default said or left out, `1.0` for `1`, another
    order or other spaces."""
    return same_call(name, {**(defaults_of(tool) if tool else {}), **args})


def is_rejected(fold: RunFold, call: str, tool: Tool | None, name: str, args: Mapping[str, JSON]) -> bool:
    """Whether a person has rejected this very call in this run, or in one that it was forked from."""
    return bool(fold.rejected) and (call in fold.rejected or meaning(tool, name, args) in fold.rejected)


def another_was_rejected(fold: RunFold, step_id: str, tool: Tool) -> bool:
    """Whether a person has rejected another call of this tool before this step was written. Then it is for a person to
    decide, or a no would be got around by a word more."""
    written = fold.since.get(step_id, 0)
    return any(written > revision for name, revision in fold.rejected.items() if name.startswith(f"{tool.name}|"))


def defaults_of(tool: Tool) -> dict[str, JSON]:
    """What a tool takes for arguments that are not given."""
    declared: Mapping[str, Any] = tool.input_schema.get("properties") or {}
    return {name: each["default"] for name, each in declared.items() if isinstance(each, Mapping) and "default" in each}
