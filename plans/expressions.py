"""JMESPath, compiled once and made safe to hand to strangers: errors are one type, and depth and length are bounded."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jmespath
import jmespath.exceptions

from plans.values import JSON

MAX_LENGTH = 2_000
"""Longest expression in characters; real ones have tens. Bounds what a hostile plan can make the parser do."""


class InvalidExpression(ValueError):
    """Not JMESPath, or not evaluable on what it was given; the text says why, in one line."""


class Expression:
    """One compiled expression."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise InvalidExpression(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are read")
        try:
            self._parsed = jmespath.compile(text)
        except (jmespath.exceptions.JMESPathError, RecursionError, ValueError) as error:
            raise InvalidExpression(f"{text!r} is not JMESPath: {_one_line(error)}") from None
        self.text = text

    @property
    def tree(self) -> dict[str, Any]:
        """The syntax tree, as jmespath gives it."""
        parsed: dict[str, Any] = self._parsed.parsed
        return parsed

    def search(self, value: JSON) -> JSON:
        """What the expression finds; None where it finds nothing."""
        try:
            return self._parsed.search(value)
        except (jmespath.exceptions.JMESPathError, RecursionError, ValueError, TypeError) as error:
            raise InvalidExpression(f"{self.text!r} cannot be evaluated here: {_one_line(error)}") from None


@lru_cache(maxsize=4_096)
def compiled(text: str) -> Expression:
    """The expression, compiled once per text; InvalidExpression if it is not JMESPath."""
    return Expression(text)


def search(text: str, value: JSON) -> JSON:
    """What an expression finds in a value; None where it finds nothing."""
    return compiled(text).search(value)


def holds(text: str, value: JSON) -> bool:
    """Whether a condition is true of a value, by JMESPath's own truth: false, null, "", [] and {} are not."""
    found = search(text, value)
    return not (found is None or found is False or found == "" or found == [] or found == {})


def names_read(text: str) -> frozenset[str]:
    """The top-level names that an expression over named values may read (a superset)."""
    return frozenset(_fields(compiled(text).tree))


def _fields(node: dict[str, Any]) -> list[str]:
    if node["type"] == "field":
        return [node["value"]]
    if node["type"] in ("subexpression", "pipe", "projection", "index_expression", "filter_projection"):
        return _fields(node["children"][0]) + [
            name for child in node["children"][1:] if node["type"] == "filter_projection" for name in _fields(child)
        ]
    return [name for child in node.get("children", []) if isinstance(child, dict) for name in _fields(child)]


def finds_null(text: str, value: JSON) -> bool:
    """Whether a plain path (fields and indices only) leads to a null that really stands there."""
    found, here = _walk(compiled(text).tree, value)
    return found and here is None


def _walk(node: dict[str, Any], value: JSON) -> tuple[bool, JSON]:
    kind = node["type"]
    if kind in ("current", "identity"):
        return True, value
    if kind == "field":
        there = isinstance(value, dict) and node["value"] in value
        return there, value[node["value"]] if there else None
    if kind == "index":
        there = isinstance(value, list) and -len(value) <= node["value"] < len(value)
        return there, value[node["value"]] if there else None
    if kind in ("subexpression", "index_expression"):
        for child in node["children"]:
            there, value = _walk(child, value)
            if not there:
                return False, None
        return True, value
    return False, None


def _one_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).split())[:200]
