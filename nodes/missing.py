"""Results that are not there: what a step gets in their place when it is to run with what there is."""

from __future__ import annotations

from collections.abc import Collection

from plans.references import Reference, escape, parse
from plans.values import JSON


def without(value: JSON, missing: Collection[str]) -> JSON:
    """The value with each reference to one of these names turned into null; the other references are left in place. A
    name may be that of one element of a list (`s3[1]`): then what refers to that element alone becomes null."""
    if not missing:
        return value
    if isinstance(value, str):
        return _text_without(value, missing)
    if isinstance(value, dict):
        return {key: without(item, missing) for key, item in value.items()}
    return [without(item, missing) for item in value] if isinstance(value, list | tuple) else value


def note(missing: Collection[str]) -> str | None:
    """What is told of a step that ran without these results; None where it lacked nothing."""
    return f"run without the result of {', '.join(missing)}" if missing else None


def _text_without(text: str, missing: Collection[str]) -> JSON:
    parts = parse(text)
    if len(parts) == 1 and _is_gone(parts[0], missing):
        return None
    if not any(_is_gone(part, missing) for part in parts):
        return text
    return "".join(_part_without(part, missing) for part in parts)


def _part_without(part: str | Reference, missing: Collection[str]) -> str:
    if isinstance(part, str):
        return escape(part)
    return "null" if _is_gone(part, missing) else str(part)


def _is_gone(part: str | Reference, missing: Collection[str]) -> bool:
    if isinstance(part, str):
        return False
    return part.name in missing or any(f"{part.name}{part.path}".startswith(name) for name in missing if "[" in name)
