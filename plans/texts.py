"""Changes all texts of a value of JSON, its keys among them, and leaves it itself where nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plans.values import JSON


def mapped(value: JSON, change: Callable[[str], str]) -> JSON:
    """The value with each text in it changed; the very same value where none is."""
    if isinstance(value, str):
        changed = change(value)
        return value if changed == value else changed
    if isinstance(value, Mapping):
        fields = {change(name): mapped(item, change) for name, item in value.items()}
        same = len(fields) == len(value) and all(name in value and fields[name] is value[name] for name in fields)
        return value if same else fields
    if isinstance(value, list | tuple):
        items = [mapped(item, change) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
