"""What a tool returned, as JSON that can be stored; or why it cannot be."""

from __future__ import annotations

import json
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import PydanticSerializationError, to_jsonable_python

from plans.failure import ToolFailure
from plans.values import JSON, dotted, unclean
from tools.callee import NOTHING, Unusable
from tools.typed_arguments import PlainSchema


class BadOutput(ToolFailure):
    """A tool returned something that is not what it declares (OUTPUT_INVALID, OUTPUT_EMPTY) or that says of itself that
    the tool failed. `certain` is True where its effect is known not to have happened; a tool that returned may have
    acted."""

    def __init__(self, code: str, message: str, *, certain: bool = False) -> None:
        super().__init__(code, message)
        self.certain = certain


class Result:
    """What a tool declares to return. `schema` is None where it declares nothing that could be checked."""

    def __init__(self, returns: Any = NOTHING) -> None:
        self._adapter: TypeAdapter[Any] | None = None
        self.schema: dict[str, Any] | None = None
        if returns in (NOTHING, Any, object):
            return
        try:
            self._adapter = TypeAdapter(returns)
            self.schema = self._adapter.json_schema(mode="serialization", schema_generator=PlainSchema)
        except (PydanticUserError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeError) as error:
            told = str(error).split("\n", maxsplit=1)[0]
            raise Unusable(f"returns something that JSON cannot hold: {told}") from None

    def stored(self, returned: Any) -> JSON:
        """The JSON value of what came back. Raises BadOutput."""
        try:
            value = self._as_json(returned)
            problem = next(iter(unclean(value)), None)
        except RecursionError:
            raise BadOutput("OUTPUT_INVALID", "the tool returned a value that is nested too deeply") from None
        if problem is not None:
            path, why = problem
            raise BadOutput("OUTPUT_INVALID", f"the tool returned a value that cannot be stored: {dotted(path)} {why}")
        return value

    def _as_json(self, returned: Any) -> JSON:
        try:
            if self._adapter is None:
                return plain(returned)
            return self._adapter.dump_python(self._checked(self._adapter, returned), mode="json", by_alias=True)
        except ValidationError as error:
            raise BadOutput("OUTPUT_INVALID", f"the tool's result is not what it declares: {_told(error)}") from None
        except (PydanticSerializationError, ValueError, TypeError):
            kind = type(returned).__name__
            raise BadOutput(
                "OUTPUT_INVALID",
                f"the tool returned a {kind} that JSON cannot hold; return plain values, or write a file and name it",
            ) from None

    @staticmethod
    def _checked(adapter: TypeAdapter[Any], returned: Any) -> Any:
        """The result as its declared type: already of that type, or the JSON of it (a dict for a model)."""
        try:
            return adapter.validate_python(returned, strict=True)
        except ValidationError:
            return adapter.validate_json(json.dumps(plain(returned)), strict=True)


def plain(value: Any) -> JSON:
    """A value of models, dataclasses, Decimal (as text), dates, UUID, Enum, sets (in no order) and the like as JSON.
    What is none of these raises PydanticSerializationError, ValueError or TypeError; bytes belong into a file."""
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("bytes")
    return to_jsonable_python(value, by_alias=True, inf_nan_mode="constants")


def _told(error: ValidationError) -> str:
    """The first places and what should be there; never the values, which may be private."""
    problems = error.errors(include_url=False, include_input=False)
    told = [f"{dotted(tuple(p['loc'])) or 'the result'}: {p['msg']}" for p in problems[:5]]
    more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
    return "; ".join(told) + more
