"""JMESPath, compiled once and made safe to hand to strangers: errors are one type, and depth and length are bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

import jmespath
import jmespath.exceptions
from jmespath.functions import Functions

from plans.values import JSON, MAX_DEPTH, printable

MAX_LENGTH = 2_000
"""Longest expression in characters; real ones have tens. Bounds what a hostile plan can make the parser do."""


Tree = dict[str, Any]

_FUNCTIONS: Mapping[str, Any] = vars(Functions)["FUNCTION_TABLE"]
_PROJECTIONS = frozenset({"projection", "value_projection", "filter_projection", "flatten"})
_STEPS = frozenset({"subexpression", "pipe", "index_expression"}) | _PROJECTIONS
_TROUBLE = (
    jmespath.exceptions.JMESPathError,
    ArithmeticError,
    RecursionError,
    TypeError,
    ValueError,
    PendingDeprecationWarning,  # a back-quoted literal that is no JSON, where warnings are errors
)


class InvalidExpression(ValueError):
    """Not JMESPath, or not evaluable on what it was given; the text says why, in one line."""


class Expression:
    """One compiled expression."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise InvalidExpression(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are read")
        try:
            self._parsed = jmespath.compile(text)
        except _TROUBLE as error:
            raise InvalidExpression(f"{printable(text)!r} is not JMESPath: {_one_line(error)}") from None
        self.text = text
        self._names: frozenset[str] | None = None
        if problem := _trap_in(self.tree):
            raise InvalidExpression(f"{printable(text)!r}: {problem}")

    @property
    def names(self) -> frozenset[str]:
        """The top-level names it reads (see `names_read`)."""
        if self._names is None:
            self._names = frozenset(_at_root(self.tree))
        return self._names

    @property
    def tree(self) -> Tree:
        """The syntax tree, as jmespath gives it."""
        return cast("Tree", self._parsed.parsed)

    def search(self, value: JSON) -> JSON:
        """What the expression finds; None where it finds nothing."""
        try:
            return self._parsed.search(value)
        except _TROUBLE as error:
            raise InvalidExpression(f"{printable(self.text)!r} cannot be evaluated here: {_one_line(error)}") from None


def _trap_in(tree: Tree) -> str | None:
    """What jmespath reads without complaint and would then fail on, or silently find nothing with."""
    level, depth = [tree], 0
    while level:
        for node in level:
            if problem := _call_problem(node) or _negation_problem(node):
                return problem
        level = [child for node in level for child in node.get("children", ()) if isinstance(child, dict)]
        depth += 1
        if depth > MAX_DEPTH:
            return "it is nested too deeply"
    return None


def _call_problem(node: Tree) -> str | None:
    if node["type"] != "function_expression":
        return None
    name, given = node["value"], len(node["children"])
    if name not in _FUNCTIONS:
        return f"there is no function {name}(); there are {', '.join(sorted(_FUNCTIONS))}"
    signature = _FUNCTIONS[name]["signature"]
    if given == len(signature) or (signature[-1].get("variadic") and given > len(signature)):
        return None
    return f"{name}() takes {len(signature)} arguments, not {given}"


def _negation_problem(node: Tree) -> str | None:
    if node["type"] in _STEPS - {"pipe"} and node["children"][0]["type"] == "not_expression":
        return "a ! binds to the first name only, so that this finds nothing; write !(…) around the whole path"
    return None


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
    return not (found is None or found is False or found in ("", [], {}))


def names_read(text: str) -> frozenset[str]:
    """The top-level names that an expression over named values reads; names of what lies under them are not among
    them. Empty where it reads the whole ("@"). InvalidExpression if it is not JMESPath."""
    return compiled(text).names


def names_in(condition: str | None) -> frozenset[str]:
    """The same of a condition that a step may have: none where there is none, or where it is no expression."""
    try:
        return names_read(condition) if condition else frozenset()
    except InvalidExpression:
        return frozenset()


def _at_root(node: Tree) -> Iterator[str]:
    kind = node["type"]
    if kind == "field":
        yield node["value"]
    elif kind in _STEPS:
        # Only the first part is evaluated on the named values; the next is too as long as that part was "@".
        for child in node["children"]:
            yield from _at_root(child)
            if kind in _PROJECTIONS or child["type"] not in ("current", "identity"):
                break
    elif kind != "expref":
        for child in node.get("children", ()):
            if isinstance(child, dict):
                yield from _at_root(child)


def finds_null(text: str, value: JSON) -> bool:
    """Whether a plain path (fields and indices only) leads to a null that really stands there."""
    found, here = _walk(compiled(text).tree, value)
    return found and here is None


def _walk(node: Tree, value: JSON) -> tuple[bool, JSON]:
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
