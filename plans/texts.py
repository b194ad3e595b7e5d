"""The texts of a value of JSON: found with their places, or changed, its keys among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plans.values import JSON, Path

Change = Callable[[str], str]
ChangeInField = Callable[[str, str], str]
"""What becomes of the text of a field: from the field's name and itself."""


def texts_with(mark: str, value: JSON, path: Path = ()) -> list[tuple[Path, str]]:
    """The texts in a value that hold this mark ("": all), each with its place; keys are not looked at."""
    found: list[tuple[Path, str]] = []
    _collect(mark, value, path, found)
    return found


def _collect(mark: str, value: JSON, path: Path, found: list[tuple[Path, str]]) -> None:
    if isinstance(value, str):
        if mark in value:
            found.append((path, value))
    elif isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if not isinstance(item, str) or mark in item:
                _collect(mark, item, (*path, key), found)


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
