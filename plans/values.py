"""JSON-like values: the alias, their canonical text, their hash, and what may be stored at all."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

JSON = Any
"""A value of JSON: None, bool, int, float, str, list or dict with str keys. Mypy cannot check recursion through Any."""

Path = tuple[str | int, ...]

_UNSTORABLE_CHARACTER = re.compile("[\x00\ud800-\udfff]")
_INT64 = 2**63


def canonical(value: JSON) -> str:
    """The one text of a value: sorted keys, no spaces; 1, 1.0, true and "1" stay different."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_of(value: JSON) -> str:
    """Hex SHA-256 of the canonical text in UTF-8."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def unclean(value: JSON, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where a value cannot be stored, and why: NUL, lone surrogates, NaN, Infinity, integers beyond 64 bits,
    keys that are not text, things that are not JSON. PostgreSQL refuses each of them."""
    return iter(()) if _is_plain(value) else _unclean(value, path)


def _is_plain(value: JSON) -> bool:
    """Whether this is clean and made of JSON's own types, said fast: each result and each row of the journal is asked.
    False says nothing: then `_unclean` looks."""
    kind = type(value)
    if kind is str:
        return (value.isascii() and "\x00" not in value) or not _UNSTORABLE_CHARACTER.search(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not _is_plain(key) or not _is_plain(item):
                return False
        return True
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool or (kind is int and -_INT64 <= value < _INT64)


def _unclean(value: JSON, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _unclean(key, (*path, key))
                yield from _unclean(item, (*path, key))
            else:
                yield path, f"has the key {key!r}; keys must be text"
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _unclean(item, (*path, index))
    elif problem := _scalar_problem(value):
        yield path, problem


def _scalar_problem(value: JSON) -> str | None:
    if isinstance(value, str):
        found = _UNSTORABLE_CHARACTER.search(value)
        return f"holds the character U+{ord(found[0]):04X}, which cannot be stored" if found else None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, not a number that JSON can hold"
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if -_INT64 <= value < _INT64 else "is an integer beyond 64 bits"
    return f"is a {type(value).__name__}, not JSON"


def dotted(path: Path) -> str:
    """`steps[0].args.limit` for ("steps", 0, "args", "limit"); long and unprintable keys are shortened."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{printable(part)}"
    return text


def printable(text: str, most: int = 80) -> str:
    """A text cut to so many characters, with escapes for what cannot be printed: it can be stored and shown."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


def clean(value: JSON) -> JSON:
    """The value itself, if it can be stored; else ValueError naming each place that cannot."""
    if problems := [f"{dotted(path) or 'the value'} {why}" for path, why in unclean(value)]:
        raise ValueError("; ".join(problems[:5]))
    return value


MAX_DEPTH = 64
"""Deepest nesting of a value that is read; real plans and results stay under 20, and some readers stop at 100."""


_SCALARS = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple})


def too_deep(value: JSON, most: int = MAX_DEPTH) -> bool:
    """Whether lists and objects are nested deeper than `most`. Never recurses, so that nothing can break it."""
    level = _containers((value,))
    for _ in range(most):
        if not level:
            return False
        level = _containers(item for container in level for item in _items(container))
    return bool(level)


def _items(container: JSON) -> Iterable[JSON]:
    return container.values() if type(container) is dict or isinstance(container, Mapping) else container


def _containers(items: Iterable[JSON]) -> list[JSON]:
    # Once each: a value that refers to one list twice, again and again, would double with every level.
    return list({id(item): item for item in items if type(item) not in _SCALARS and _is_container(item)}.values())


def _is_container(item: JSON) -> bool:
    return type(item) in _CONTAINERS or isinstance(item, Mapping | list | tuple)
