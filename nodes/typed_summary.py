"""A result as the verifier may see it: numbers, truth values, single words and declared values as they are; of longer
text only the length.

Somebody who has written a result can put a word into it, and no sentence: nothing here can be read as an instruction
that a longer text could give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from nodes.catalog import MAX_SUMMARY, has_names, summary
from plans.values import JSON

ELEMENTS = 3
"""Elements of a list that are shown; of the others the number is told."""

_WORD = re.compile(r"[A-Za-zÀ-ɏ0-9][A-Za-zÀ-ɏ0-9_.:+-]{0,23}")
_DEPTHS = (4, 3, 2, 1)


def typed_summary(value: JSON, schema: JSON = None) -> JSON:
    """What a value says as far as its types are closed. Texts that its JSON schema declares (`enum`, `const`) are shown
    whatever they are. The summary's JSON has at most MAX_SUMMARY characters: else less of the depth is told."""
    declared = frozenset(_declared(schema))
    for depth in _DEPTHS:
        told = _told(value, declared, depth)
        if len(json.dumps(told)) <= MAX_SUMMARY:
            return told
    return summary(value)


def _told(value: JSON, declared: Collection[str], depth: int) -> JSON:
    if isinstance(value, str):
        shown = value in declared or _WORD.fullmatch(value)
        return value if shown else f"text of {len(value)} characters"
    if not isinstance(value, Mapping | list):
        return value
    if not depth:
        return summary(value)
    if isinstance(value, list):
        first = [_told(item, declared, depth - 1) for item in value[:ELEMENTS]]
        return first if len(value) <= ELEMENTS else {"list_of": len(value), "first": first}
    if not has_names(value):
        return f"object of {len(value)} fields"
    return {name: _told(item, declared, depth - 1) for name, item in value.items()}


def _declared(schema: JSON) -> Iterator[str]:
    """The texts that a schema allows by name, at any depth."""
    if isinstance(schema, Mapping):
        listed = schema.get("enum")
        named = [*(listed if isinstance(listed, list) else ()), schema.get("const")]
        yield from (each for each in named if isinstance(each, str))
        for inner in schema.values():
            yield from _declared(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _declared(inner)
