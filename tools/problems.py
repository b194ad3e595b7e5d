"""Problems of arguments: where they are, which of them a reference explains, and how they are told."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

from plans.values import JSON, Path, unclean

Problem = tuple[Path, str]


def within(path: Path, references: Iterable[Path]) -> bool:
    """Whether a place is at or under one of the references."""
    return any(path[: len(reference)] == reference for reference in references)


def above(path: Path, references: Iterable[Path]) -> bool:
    """Whether one of the references is under a place."""
    return any(reference[: len(path)] == path for reference in references)


def scrubbed(args: Mapping[str, JSON]) -> tuple[dict[str, JSON], list[Problem]]:
    """The arguments with null where something stands that cannot be stored, and those places."""
    found = list(unclean(args))
    if not found:
        return dict(args), []
    return _without(args, {path for path, _ in found}), found


def _without(value: JSON, places: Collection[Path], path: Path = ()) -> JSON:
    if path in places and path != ():
        return None
    if isinstance(value, Mapping):
        return {key: _without(item, places, (*path, key)) for key, item in value.items() if isinstance(key, str)}
    if isinstance(value, list | tuple):
        return [_without(item, places, (*path, index)) for index, item in enumerate(value)]
    return value


def kind_of(value: JSON) -> str:
    """What a value is, without showing it: arguments may hold what must not be repeated."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def unknown(name: str, known: Sequence[str]) -> str:
    """The sentence about an argument that a tool does not have."""
    if not known:
        return "is not an argument of this tool; it takes none"
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known)}"
    return f"is not an argument of this tool; {hint}"
