"""JSON schemas that others have written, judged within bounds: no schema, and no value that its author sends after it,
can keep us busy without end, break the judging, or have anything fetched.

Patterns are judged in linear time, as Rust knows them; one that it does not know asks for nothing. `$schema` chooses
among the drafts from 4 on, and what it says else means the newest. References lead from `#` down by names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from plans.values import JSON, canonical, printable

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

MAX_STEPS = 250_000
"""Most schemas that are applied to a value and its parts: some seconds. An honest result of 2 MB needs half."""
MAX_LEVELS = 150
"""Deepest nesting of schemas that are applied at once, references included."""
MAX_ERRORS = 100
_APPLYING = (
    "$ref", "$dynamicRef", "$recursiveRef", "additionalItems", "additionalProperties", "allOf", "anyOf", "contains",
    "dependencies", "dependentSchemas", "else", "if", "items", "not", "oneOf", "patternProperties", "prefixItems",
    "properties", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_ONE = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
     "unevaluatedItems", "unevaluatedProperties"}
)  # fmt: skip
_SEVERAL = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
_SAME_VALUE = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
_REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")
_DRAFTS = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
}


class Endless(Exception):
    """A schema that cannot be judged within its bounds; the text says which, as a clause."""


@dataclass
class _Spent:
    steps: int = 0
    levels: int = 0


_SPENT: ContextVar[_Spent] = ContextVar("spent")


def validator(schema: Mapping[str, Any]) -> Validator:
    """What judges by a schema. Its errors are taken by `errors`."""
    from referencing import Registry

    # An empty registry: a schema from elsewhere must not make us fetch what it points to.
    named = {key: value for key, value in schema.items() if key not in ("$id", "id")}
    made: Validator = _draft(schema)(named, registry=Registry())
    return made


def errors(judge: Validator, value: JSON) -> Iterator[ValidationError]:
    """The first hundred errors. Raises Endless, and referencing's Unresolvable."""
    token = _SPENT.set(_Spent())
    try:
        found = list(islice(judge.iter_errors(value), MAX_ERRORS))
    except RecursionError:
        raise Endless("is nested too deeply") from None
    finally:
        _SPENT.reset(token)
    yield from found


def fault(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a schema itself, as a clause: that it is none, where it points to nothing, or that it says the
    same of the same value without end."""
    draft = _draft(schema)
    try:
        for error in errors(draft(draft.META_SCHEMA), dict(schema)):
            return f"is no JSON schema: {printable(error.message, 200)} at {printable(error.json_path)}"
        parts = list(_parts(schema))
    except Endless as why:
        return str(why)
    for part in parts:
        for keyword in _REFERRING:
            if isinstance(ref := part.get(keyword), str) and _found(schema, ref) is None:
                return f"refers to {printable(ref)!r}, which is not in it"
    if strange := next((pattern for part in parts for pattern in _patterns(part) if not _readable(pattern)), None):
        return f"has the pattern {printable(strange)!r}, which is no regular expression"
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        return "has unevaluatedProperties and patternProperties, which are not judged together"
    return "refers to itself without end" if _in_a_circle(schema, parts) else None


def _draft(schema: Mapping[str, Any]) -> Any:
    said = schema.get("$schema")
    return _bounded(_DRAFTS.get(said.rstrip("#"), "Draft202012Validator") if isinstance(said, str) else "")


@cache
def _bounded(name: str) -> Any:
    """A draft's validator whose steps are counted, and whose patterns take linear time."""
    from jsonschema import validators

    draft = getattr(validators, name or "Draft202012Validator")
    ours = {
        **draft.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    counted = {keyword: _counted(ours[keyword]) for keyword in _APPLYING if keyword in ours}
    extend: Callable[..., Any] = validators.extend  # without types of its own
    return extend(draft, {**ours, **counted})


def _counted(judged: Callable[..., Any]) -> Callable[..., Any]:
    def within_bounds(judge: Any, rule: Any, value: Any, schema: Any) -> Iterator[Any]:
        spent = _SPENT.get()
        spent.steps += 1
        spent.levels += 1
        try:
            if spent.levels > MAX_LEVELS:
                raise Endless("is nested too deeply, or refers to itself without end")
            if spent.steps > MAX_STEPS:
                raise Endless("takes too long to be judged")
            yield from judged(judge, rule, value, schema) or ()
        finally:
            spent.levels -= 1

    return within_bounds


@lru_cache(maxsize=1_024)
def _matching(pattern: str) -> Callable[[str], bool] | None:
    """Whether a text holds what a pattern describes; None for a pattern that is not known."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True)).isinstance_python
    except SchemaError:
        return None


def _matches(pattern: str, text: str) -> bool | None:
    matching = _matching(pattern)
    return None if matching is None else matching(text)


def _patterns(part: Mapping[str, Any]) -> list[str]:
    named = part.get("patternProperties")
    own = part.get("pattern")
    return [*([own] if isinstance(own, str) else []), *(named if isinstance(named, Mapping) else ())]


def _readable(pattern: str) -> bool:
    """Whether some reader knows it: a pattern with backreferences, which Rust does not, is a pattern all the same."""
    if _matching(pattern) is not None:
        return True
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and _matches(pattern, value) is False:
        yield ValidationError(f"it does not match {pattern!r}")


def _pattern_properties(judge: Any, patterns: Any, value: Any, __: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name, item in value.items():
                if _matches(pattern, name):
                    yield from judge.descend(item, schema, path=name, schema_path=pattern)


def _additional_properties(judge: Any, rule: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others = [n for n in value if n not in named and all(_matches(pattern, n) is False for pattern in patterns)]
    if rule is False and others:
        yield ValidationError(f"{len(others)} properties are not allowed")
    elif rule is not False:
        for name in others:
            yield from judge.descend(value[name], rule, path=name)


def _unique_items(_: Any, rule: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if rule is True and isinstance(value, list) and len({canonical(item) for item in value}) < len(value):
        yield ValidationError("it has elements that are the same")


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
    """What a reference names in its schema; None where it leads elsewhere or to nothing."""
    found: Any = schema
    if ref.partition("/")[0] != "#":
        return None
    for step in ref.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list):
            found = found[int(key)] if key.isdecimal() and len(key) < 9 and int(key) < len(found) else None
        else:
            return None
    return found if isinstance(found, Mapping | bool) else None


def _in_a_circle(schema: Mapping[str, Any], parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether judging a value may lead to the same schema for the same value again."""
    done: set[int] = set()
    for start in parts:
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
    found += [part[keyword] for keyword in ("if", "then", "else", "not") if keyword in part]
    found += [_found(schema, ref) for keyword in _REFERRING if isinstance(ref := part.get(keyword), str)]
    return [each for each in found if isinstance(each, Mapping)]
