"""Results described by a JSON schema, as MCP servers and OpenAPI documents give them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plans.values import JSON
from tools.foreign_schemas import Endless, errors, validator
from tools.output import BadOutput, Result, plain
from tools.schema_faults import fault

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_MOST = 5


class SchemaResult(Result):
    """A result that has to fit a JSON schema; nothing that the schema points to is fetched."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        super().__init__()
        self.schema = dict(schema)

    def fault(self) -> str | None:
        """What is wrong with the schema itself, if anything."""
        why = fault(self.schema or {})
        return None if why is None else f"it {why}"

    def _as_json(self, returned: Any) -> JSON:
        from referencing.exceptions import Unresolvable

        value = plain(returned)
        try:
            found = [f"{error.json_path}: {_told(error)}" for error in errors(self._validator, value)]
        except Unresolvable:
            raise BadOutput("OUTPUT_INVALID", "the tool's result schema refers to what it does not hold") from None
        except Endless as why:
            raise BadOutput("OUTPUT_INVALID", f"the tool's result cannot be judged: its schema {why}") from None
        if found:
            more = f" (and {len(found) - _MOST} more)" if len(found) > _MOST else ""
            raise BadOutput(
                "OUTPUT_INVALID", f"the tool's result is not what it declares: {'; '.join(found[:_MOST])}{more}"
            )
        return value

    @cached_property
    def _validator(self) -> Validator:
        return validator(self.schema or {})


def _told(error: Any) -> str:
    """What a value should be, without the value, which may be private."""
    rule = error.validator_value
    return f"{error.validator} {rule!r}" if isinstance(rule, str | int | float) else f"does not meet {error.validator}"
