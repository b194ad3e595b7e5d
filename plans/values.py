"""JSON-like values: the alias, their canonical text, their hash, and what may be stored at all."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
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
    if isinstance(value, str):
        if found := _UNSTORABLE_CHARACTER.search(value):
            yield path, f"holds the character U+{ord(found[0]):04X}, which cannot be stored"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield path, f"{value} is not a number that JSON can hold"
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -_INT64 <= value < _INT64:
            yield path, "is an integer beyond 64 bits"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield path, f"has the key {key!r}; keys must be text"
                continue
            yield from unclean(key, (*path, key))
            yield from unclean(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from unclean(item, (*path, index))
    elif value is not None and not isinstance(value, bool):
        yield path, f"is a {type(value).__name__}, not JSON"


def dotted(path: Path) -> str:
    """`steps[0].args.limit` for ("steps", 0, "args", "limit")."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def clean(value: JSON) -> JSON:
    """The value itself, if it can be stored; else ValueError naming each place that cannot."""
    if problems := [f"{dotted(path) or 'the value'} {why}" for path, why in unclean(value)]:
        raise ValueError("; ".join(problems[:5]))
    return value
