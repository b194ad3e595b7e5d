"""A tool as it was changed while running: switched off, or with other limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from plans.errors import ConfigurationError
from tools.ports import SettingsStore
from tools.tool import Tool

CHANGEABLE = frozenset({"enabled", "timeout_s", "retry", "breaker", "rate_limit", "concurrency", "cache_ttl_s"})
"""What may be changed without a new declaration: nothing that says what a tool does, or who may use it."""


async def as_changed(tool: Tool, settings: SettingsStore) -> Tool:
    """The tool with its stored changes. ConfigurationError for changes that make no sense."""
    changes = dict(await settings.get(tool.name))
    if not changes:
        return tool
    if foreign := sorted(changes.keys() - CHANGEABLE):
        known = ", ".join(sorted(CHANGEABLE))
        raise ConfigurationError(f"the stored settings of tool {tool.name!r} hold {foreign[0]!r}; known: {known}")
    enabled = bool(changes.pop("enabled", tool.enabled))
    try:
        return replace(tool, spec=tool.spec.changed(_merged(tool, changes)), enabled=enabled)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(f"the stored settings of tool {tool.name!r}: {place}: {problem['msg']}") from None


def _merged(tool: Tool, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Of a group of settings, such as the breaker's, those that were not changed stay as declared."""
    declared = tool.spec.model_dump(include=set(changes))
    return {
        key: {**declared[key], **value} if isinstance(value, Mapping) and isinstance(declared[key], dict) else value
        for key, value in changes.items()
    }
