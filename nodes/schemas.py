"""Values against JSON schemas that came from elsewhere: all problems at once, and never a download."""

from __future__ import annotations

from collections.abc import Mapping

from plans.values import JSON

MAX_PROBLEMS = 5
MAX_WORDS = 200


def load() -> None:
    """Import what checks schemas. It reads files as it is imported, which has no place on an event loop."""
    import jsonschema  # noqa: F401  # for what importing it does


def problem_of(schema: Mapping[str, JSON]) -> str | None:
    """Why a schema is none; None if it is one."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:MAX_WORDS]}"
    return None


def problems(value: JSON, schema: Mapping[str, JSON]) -> list[str]:
    """What keeps a value from fitting a schema, each with its place; empty if it fits. A `$ref` is followed within the
    schema only; a schema that is none is a problem too."""
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    if wrong := problem_of(schema):
        return [f"the schema itself is none: {wrong}"]
    try:
        # With a registry of its own the library fetches nothing; with the default one it would.
        found = list(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as error:
        return [f"the schema refers to what it does not hold: {error.ref}"]
    return [f"{problem.json_path}: {problem.message[:MAX_WORDS]}" for problem in found[:MAX_PROBLEMS]]
