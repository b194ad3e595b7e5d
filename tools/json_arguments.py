"""Arguments described by a JSON schema, as MCP servers and hand-written declarations give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plans.values import JSON, Path
from tools.foreign_schemas import Endless, errors, validator
from tools.problems import Problem, above, kind_of, scrubbed, unknown, within
from tools.schema_faults import fault

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_CLOSED_BY_US = (
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
)
_STRUCTURAL = frozenset({"required", "additionalProperties", "unevaluatedProperties", "type", "dependentRequired"})


class SchemaArguments:
    """What a JSON schema of an object allows. Where it names properties, others are refused unless it says otherwise; a
    schema that names none, as {"type": "object"}, takes any."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema: dict[str, Any] = {"type": "object", "properties": {}, **schema}
        if "properties" in schema and not any(keyword in schema for keyword in _CLOSED_BY_US):
            self.schema["additionalProperties"] = False

    @property
    def names(self) -> frozenset[str]:
        """The arguments that the schema names."""
        properties = self.schema["properties"]
        return frozenset(properties) if isinstance(properties, Mapping) else frozenset()

    @property
    def open(self) -> bool:
        """Whether others may be given too."""
        return self.schema.get("additionalProperties") is not False

    def fault(self) -> str | None:
        """What is wrong with the schema itself, if anything."""
        if self.schema["type"] != "object":
            return f"args_schema describes {self.schema['type']!r}; arguments are an object"
        why = fault(self.schema)
        return None if why is None else f"args_schema {why}"

    def problems(self, args: Mapping[str, JSON], references: Sequence[Path]) -> list[Problem]:
        """Every problem, except those that a reference's value will settle."""
        clean, found = scrubbed(args)
        unsettled = [*references, *(path for path, _ in found)]
        try:
            for error in errors(self._validator, clean):
                if not _settled(error, unsettled):
                    found += _told(error, sorted(self.names))
        except Endless as why:
            found.append(((), f"cannot be checked: the schema of the arguments {why}"))
        return found

    def typed(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The values as they came: a JSON schema makes no types."""
        return dict(args)

    def taken(self, args: Mapping[str, JSON]) -> tuple[dict[str, Any], list[Problem]]:
        """The values as they came, and every problem."""
        return self.typed(args), self.problems(args, ())

    def comparable(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The values as they came."""
        return dict(args)

    @cached_property
    def _validator(self) -> Validator:
        return validator(self.schema)


def _settled(error: ValidationError, references: Sequence[Path]) -> bool:
    """Whether a reference explains a problem. A choice between branches is settled if one of them is; keywords that
    compare whole values are, if a reference is inside of the value."""
    path: Path = tuple(error.absolute_path)
    if within(path, references):
        return True
    if not above(path, references) or error.validator in _STRUCTURAL:
        return False
    if error.validator in ("anyOf", "oneOf") and error.context:
        branches: dict[Any, list[ValidationError]] = {}
        for nested in error.context:
            branches.setdefault(nested.schema_path[0], []).append(nested)
        return any(all(_settled(nested, references) for nested in branch) for branch in branches.values())
    return True


def _told(error: ValidationError, known: Sequence[str]) -> list[Problem]:
    path: Path = tuple(error.absolute_path)
    rule: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        missing = [n for n in rule if n not in instance and error.message.startswith(repr(n))]
        return [((*path, name), "is missing") for name in missing]
    if error.validator == "additionalProperties" and rule is False:
        named = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [name for name in instance if name not in named]
        return [((*path, n), unknown(n, known) if not path else f"{n!r} is not allowed there") for n in extra]
    return [(path, _sentence(error))]


def _sentence(error: ValidationError) -> str:
    """What is wrong, without the value itself."""
    rule: Any = error.validator_value
    match error.validator:
        case "type":
            return f"should be {rule if isinstance(rule, str) else ' or '.join(rule)}, not {kind_of(error.instance)}"
        case "enum":
            return f"should be one of {', '.join(map(repr, rule))}"
        case "const":
            return f"should be {rule!r}"
        case "anyOf" | "oneOf":
            return "fits none of the forms it may have" if error.context else "fits more than one form it may have"
        case keyword:
            return (
                f"does not meet {keyword} {rule!r}" if not isinstance(rule, dict | list) else f"does not meet {keyword}"
            )
