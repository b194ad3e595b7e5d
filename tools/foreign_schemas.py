"""JSON schemas that others have written, judged within bounds: no schema, and no value that its author sends after it,
can keep us busy without end, break the judging, or have anything fetched.

Patterns are judged in linear time, as Rust knows them; one that it does not know asks for nothing. `$schema` chooses
among the drafts from 4 on, and what it says else means the newest. References lead from `#` down by names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from plans.values import JSON, canonical

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
    made: Validator = draft_of(schema)(named, registry=Registry())
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


def draft_of(schema: Mapping[str, Any]) -> Any:
    """What judges by the draft that a schema says it is of, else by the newest; within bounds."""
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
        "multipleOf": _multiple_of,
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
def matching(pattern: str) -> Callable[[str], bool] | None:
    """Whether a text holds what a pattern describes; None for a pattern that is not known."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True)).isinstance_python
    except SchemaError:
        return None


def _matches(pattern: str, text: str) -> bool | None:
    judged = matching(pattern)
    return None if judged is None else judged(text)


def _pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and _matches(pattern, value) is False:
        yield ValidationError(f"it does not match {pattern!r}")


def _multiple_of(_: Any, step: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    number, exact = _as_written(value), _as_written(step)
    if number is not None and exact and number % exact:
        yield ValidationError("it is no such multiple")


def _as_written(number: JSON) -> Fraction | None:
    """A number by its digits: divided as binary numbers, 19.99 is no multiple of 0.01."""
    if isinstance(number, float):
        return Fraction(repr(number)) if math.isfinite(number) else None
    return Fraction(number) if isinstance(number, int) and not isinstance(number, bool) else None


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
