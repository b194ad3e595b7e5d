"""Three ways to have an answer in a given shape: by a JSON schema, by the call of a tool, by words alone.

Which of them an endpoint understands is asked once and known for the life of the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nodes.model_settings import StructuredOutput
from nodes.strict_schema import is_strict
from plans.values import JSON

Mode = Literal["json_schema", "tools", "text"]
MODES: tuple[Mode, ...] = ("json_schema", "tools", "text")
"""From the tightest to the loosest: what an endpoint refuses is left for the next."""

ANSWER = "answer"
"""What the one function is called that a model can call to answer."""


class Known:
    """What endpoints have turned out to understand, by endpoint and model: the tightest mode that is left, and whether
    they refuse to be asked for the usage of a streamed answer."""

    def __init__(self) -> None:
        self._tightest: dict[tuple[str, str], Mode] = {}
        self._without_usage: set[tuple[str, str]] = set()

    def tightest(self, of: tuple[str, str]) -> Mode:
        """The first mode to try."""
        return self._tightest.get(of, MODES[0])

    def understood(self, of: tuple[str, str], mode: Mode) -> None:
        """This mode was answered, and all tighter ones were refused."""
        self._tightest[of] = mode

    def reports_usage(self, of: tuple[str, str]) -> bool:
        """Whether it may be asked for the usage of a streamed answer."""
        return of not in self._without_usage

    def refuses_usage(self, of: tuple[str, str]) -> None:
        """It does not understand `stream_options`."""
        self._without_usage.add(of)


KNOWN = Known()
"""What this process has found out."""


def modes_for(schema: Mapping[str, JSON] | None, setting: StructuredOutput, tightest: Mode) -> tuple[Mode, ...]:
    """The modes to try in order. Where nothing is prescribed, and where a tool's arguments cannot have the shape that
    is, words have to do."""
    if schema is None:
        return ("text",)
    modes = MODES[MODES.index(tightest) :] if setting == "auto" else (setting,)
    callable_ = schema.get("type") == "object"
    return tuple(mode for mode in modes if mode != "tools" or callable_) or ("text",)


def parameters(mode: Mode, schema: Mapping[str, JSON] | None) -> dict[str, Any]:
    """What a request says about the shape of its answer. Strict where the schema is in the strict dialect.

    A response format goes as extra body, because the client library parses an answer itself when it is told the format,
    and then throws the text of a cut or filtered one away.
    """
    if schema is None or mode == "text":
        return {}
    shape = {"name": ANSWER, "strict": is_strict(schema)}
    if mode == "json_schema":
        held = {"type": "json_schema", "json_schema": {**shape, "schema": dict(schema)}}
        return {"extra_body": {"response_format": held}}
    function = {**shape, "description": "Give the answer.", "parameters": dict(schema)}
    choice = {"type": "function", "function": {"name": ANSWER}}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
