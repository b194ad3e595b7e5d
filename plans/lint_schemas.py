"""Checks of the schemas that a plan brings along itself: `output_schema` must be a JSON schema that can be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plans.faults import Fault
from plans.lint_scope import Scope, fault
from plans.values import JSON, canonical, dotted, unclean


def schema_faults(scope: Scope) -> Iterator[Fault]:
    """An `output_schema` that is no JSON schema (or has a pattern that does not compile), or points outside itself."""
    known: dict[str, str | None] = {}
    for at in scope.placed:
        schema = at[1].output_schema
        if schema is None:
            continue
        if unstorable := list(unclean(schema)):
            for path, why in unstorable:
                yield fault("SCHEMA_INVALID", f"{dotted(path)} {why}", at, ("output_schema", *path))
            continue
        text = canonical(schema)
        if text not in known:
            known[text] = schema_problem(schema)
        if problem := known[text]:
            yield fault("SCHEMA_INVALID", f"output_schema {problem}", at, ("output_schema",))


def schema_problem(schema: Mapping[str, JSON]) -> str | None:
    """Why a schema cannot be used, as the end of a sentence; None if it can. Nothing is fetched."""
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"is no JSON schema: {error.message[:200]}"
    for keyword, value in _keywords(schema):
        if keyword == "$ref" and isinstance(value, str) and not _points_inside(schema, value):
            return f"refers to {value[:80]!r}, which is not in it"
        if keyword in ("$dynamicRef", "$id", "$anchor", "$dynamicAnchor", "$schema"):
            return f"uses {keyword}, which plans do not need; write the schema out"
    return None


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                yield from (found for item in value.values() for found in _keywords(item))
                continue
            if key in ("const", "enum", "default", "examples"):
                continue
            yield key, value
            yield from _keywords(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _keywords(value)


def _points_inside(schema: Mapping[str, JSON], ref: str) -> bool:
    if ref != "#" and not ref.startswith("#/"):
        return False
    here: Any = schema
    for part in ref[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or name not in here:
            return False
        here = here[name]
    return isinstance(here, Mapping | bool)
