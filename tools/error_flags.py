"""Results that say that the tool failed, or that hold nothing, by what its spec calls an error or empty."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError

from plans.expressions import InvalidExpression, holds, search
from plans.values import JSON
from tools.output import BadOutput, plain
from tools.spec import ErrorFlag, ToolSpec

MAX_WORDS = 300
"""Most characters that a failure's sentence takes over from the result."""
MAX_BODY = 16_000
"""Most characters of a flagged result that go to the raw text of its failure."""

_EMPTY: tuple[JSON, ...] = (None, "", [], {})


def refuse_flagged(spec: ToolSpec, returned: Any) -> None:
    """Raise BadOutput for a result that one of `error_when` is true of, the first of them deciding. Seen is the result
    as it came, before its declared type: an error body rarely has the fields of an answer."""
    if not spec.error_when:
        return
    try:
        seen = plain(returned)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return  # no JSON: the output check says so, in better words
    for flag in spec.error_when:
        if _raised(flag, seen):
            refusal = BadOutput(flag.code, _sentence(spec.name, flag, seen), certain=flag.certain)
            refusal.add_note(f"the result, which error_when {flag.when!r} is true of: {_body(seen)}")
            raise refusal


def refuse_empty(spec: ToolSpec, value: JSON) -> None:
    """Raise BadOutput OUTPUT_EMPTY where the part of a result that must hold something does not."""
    part = spec.never_empty
    if part is True and value in _EMPTY:
        raise BadOutput("OUTPUT_EMPTY", "the tool returned nothing, which it declares never to do")
    if isinstance(part, str) and _found(part, value, "never_empty") in _EMPTY:
        raise BadOutput("OUTPUT_EMPTY", f"the tool returned nothing at {part!r}, which it declares never to do")


def _raised(flag: ErrorFlag, seen: JSON) -> bool:
    """A condition that cannot be judged on this result lets nothing pass."""
    try:
        return holds(flag.when, seen)
    except InvalidExpression as error:
        raise BadOutput("OUTPUT_INVALID", f"whether the tool failed cannot be told from its result: {error}") from None


def _found(expression: str, value: JSON, place: str) -> JSON:
    try:
        return search(expression, value)
    except InvalidExpression as error:
        raise BadOutput("OUTPUT_INVALID", f"{place} cannot be judged on the tool's result: {error}") from None


def _sentence(tool: str, flag: ErrorFlag, seen: JSON) -> str:
    said = flag.message or f"{tool} answered that it failed"
    words = _words(flag.message_from, seen) if flag.message_from is not None else ""
    return f"{said}: {words}" if words else said


def _words(expression: str, seen: JSON) -> str:
    """The result's own words, cut; nothing where there are none that could be shown."""
    try:
        found = search(expression, seen)
    except InvalidExpression:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return ""
    text = " ".join(str(found).split())
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


def _body(seen: JSON) -> str:
    return json.dumps(seen, ensure_ascii=False)[:MAX_BODY]
