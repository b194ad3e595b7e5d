"""What is wrong with a JSON schema that somebody else has written, found before anything is judged by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plans.values import printable, sha256_of
from tools.foreign_schemas import Endless, draft_of, errors, matching
from tools.pointers import followed

MAX_KNOWN = 20_000
_KNOWN: dict[tuple[str, str], tuple[str, str] | None] = {}
_ONE = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
     "unevaluatedItems", "unevaluatedProperties"}
)  # fmt: skip
_SEVERAL = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
_SAME_VALUE = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
_REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")


def fault(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a schema itself, as a clause: that it is none, where it points to nothing, or that it says the
    same of the same value without end."""
    if why := _misread(schema):
        return why
    parts = list(_parts(schema))
    referred = (part[keyword] for part in parts for keyword in _REFERRING if isinstance(part.get(keyword), str))
    if (broken := next((ref for ref in referred if _found(schema, ref) is None), None)) is not None:
        return f"refers to {printable(broken)!r}, which is not in it"
    if strange := next((pattern for part in parts for pattern in _patterns(part) if not _readable(pattern)), None):
        return f"has the pattern {printable(strange)!r}, which is no regular expression"
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        return "has unevaluatedProperties and patternProperties, which are not judged together"
    return "refers to itself without end" if _in_a_circle(schema, parts) else None


def _misread(schema: Mapping[str, Any]) -> str | None:
    try:
        for where, part in _one_by_one(schema):
            if why := _no_schema(draft_of(schema), part):
                message, path = why
                return f"is no JSON schema: {printable(message, 200)} at {printable(where + path[1:])}"
    except Endless as why:
        return str(why)
    return None


def _one_by_one(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schema without its definitions, and each of them, with their places."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, Mapping):
        yield "$", dict(schema)
        return
    yield "$", {keyword: value for keyword, value in schema.items() if keyword != "$defs"}
    for name, definition in definitions.items():
        yield f"$.$defs.{name}", definition


def _no_schema(draft: Any, schema: Any) -> tuple[str, str] | None:
    """Why this is no schema, and where in it. Remembered by its text: large documents repeat it per operation."""
    try:
        known = str(draft.META_SCHEMA["$schema"]), sha256_of(schema)
    except (TypeError, ValueError, RecursionError):
        known = None
    if known is not None and known in _KNOWN:
        return _KNOWN[known]
    first = next(errors(draft(draft.META_SCHEMA), schema), None)
    why = None if first is None else (first.message, first.json_path)
    if known is not None:
        if len(_KNOWN) >= MAX_KNOWN:
            _KNOWN.clear()
        _KNOWN[known] = why
    return why


def _patterns(part: Mapping[str, Any]) -> list[str]:
    named = part.get("patternProperties")
    own = part.get("pattern")
    return [*([own] if isinstance(own, str) else []), *(named if isinstance(named, Mapping) else ())]


def _readable(pattern: str) -> bool:
    """Whether some reader knows it: a pattern with backreferences, which Rust does not, is a pattern all the same."""
    if matching(pattern) is not None:
        return True
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and all that it holds, wherever a schema can stand."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            for keyword in part:
                waiting += _below(part, keyword)


def _below(part: Mapping[str, Any], keyword: str) -> Iterable[Any]:
    value = part[keyword]
    if keyword in _SEVERAL and isinstance(value, list):
        return value
    if keyword in _NAMED and isinstance(value, Mapping):
        return value.values()
    return [value] if keyword in _ONE else []


def _found(schema: Mapping[str, Any], ref: str) -> Any:
    """The schema that a reference names in its schema; None where it leads elsewhere or to nothing."""
    try:
        found = followed(schema, ref)
    except LookupError:
        return None
    return found if isinstance(found, Mapping | bool) else None


def _in_a_circle(schema: Mapping[str, Any], parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether judging a value may lead to the same schema for the same value again."""
    done: set[int] = set()
    for start in parts:
        if id(start) in done:
            continue
        path: dict[int, Iterator[Any]] = {}
        stack = [start]
        while stack:
            part = stack[-1]
            if id(part) not in path:
                path[id(part)] = iter(_of_the_same_value(schema, part))
            following = next(path[id(part)], None)
            if following is None:
                done.add(id(part))
                del path[id(stack.pop())]
            elif id(following) in path:
                return True
            elif id(following) not in done:
                stack.append(following)
    return False


def _of_the_same_value(schema: Mapping[str, Any], part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [below for keyword in part if keyword in _SAME_VALUE for below in _below(part, keyword)]
    found += [_found(schema, ref) for keyword in _REFERRING if isinstance(ref := part.get(keyword), str)]
    return [each for each in found if isinstance(each, Mapping)]
