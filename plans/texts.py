"""Changes all texts of a value of JSON, its keys among them, and leaves it itself where nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plans.values import JSON

Change = Callable[[str], str]
ChangeInField = Callable[[str, str], str]
"""What becomes of the text of a field: from the field's name and itself."""


def mapped(value: JSON, change: Change, in_field: ChangeInField | None = None) -> JSON:
    """The value with each text in it changed; the very same value where none is. Texts of fields are changed by
    `in_field`, if there is one."""
    if isinstance(value, str):
        return _same_or(value, change(value))
    if isinstance(value, Mapping):
        fields = {change(name): _item(name, item, change, in_field) for name, item in value.items()}
        same = len(fields) == len(value) and all(name in value and fields[name] is value[name] for name in fields)
        return value if same else fields
    if isinstance(value, list | tuple):
        items = [mapped(item, change, in_field) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _item(name: str, item: JSON, change: Change, in_field: ChangeInField | None) -> JSON:
    if in_field is not None and isinstance(item, str):
        return _same_or(item, in_field(name, item))
    return mapped(item, change, in_field)


def _same_or(text: str, changed: str) -> str:
    return text if changed == text else changed
