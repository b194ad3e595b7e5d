"""The style gates as pure functions: source text in, one line per offence out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]  # no other way to ask what a pattern is made of
from typing import TypeGuard

FUNCTION_LINES = 50
UNUSED_WORDS = frozenset(
    {"manager", "helper", "helpers", "util", "utils", "handler", "data", "info", "process", "smart", "v2"}
)
BLIND = frozenset({"Exception", "BaseException"})

_UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|stub|raise NotImplementedError)\b")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def too_long(source: str, lines: int) -> Iterator[str]:
    """A module of more lines than allowed, and each function of more than FUNCTION_LINES."""
    length = len(source.splitlines())
    if length > lines:
        yield f"1: the module has {length} lines, {lines} are allowed"
    for function in _functions(source):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES:
            yield f"{function.lineno}: {function.name} has {length} lines, {FUNCTION_LINES} are allowed"


def without_first_line(source: str) -> Iterator[str]:
    """A file whose first line is not a docstring that says its job."""
    first = source.split("\n", 1)[0]
    if not re.match(r'r?"""\S', first):
        yield "1: the first line is no docstring that says the file's job"


def unused_words(source: str) -> Iterator[str]:
    """Names given in this source that hold a word which says nothing, or begin with do_."""
    for name, line in _given_names(ast.parse(source)):
        word = empty_word(name)
        if word:
            yield f"{line}: {name} holds {word!r}"


def empty_word(name: str) -> str | None:
    """The word in a name that says nothing, if there is one."""
    if name.lstrip("_").startswith("do_"):
        return "do_"
    words = {word.lower() for word in _CAMEL.sub("_", name).split("_")}
    return next(iter(sorted(words & UNUSED_WORDS)), None)


def blind_excepts(source: str) -> Iterator[str]:
    """Each `except` that catches whatever comes (bare, Exception, BaseException) and does not raise it again.

    `except Exception` is an offence even where it raises: `except BaseException` says "clean up and pass on" without
    missing cancellation.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ExceptHandler) or _cleans_up(node):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or (isinstance(kind, ast.Name) and kind.id in BLIND) for kind in caught):
            yield f"{node.lineno}: except {ast.unparse(node.type) if node.type else ''}".rstrip()


def unfinished(source: str) -> Iterator[str]:
    """Each line that says that something is still to be written."""
    for number, line in enumerate(source.splitlines(), 1):
        found = _UNFINISHED.search(line)
        if found:
            yield f"{number}: {found.group()}"


def possessive_patterns(source: str) -> Iterator[str]:
    """Each pattern with a possessive repeat or an atomic group: Python 3.11.0 to 3.11.4, so Debian 12's own, match
    them wrongly, in silence."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args):
            continue
        pattern = node.args[0]
        if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str) and _possessive(pattern.value):
            yield f"{node.lineno}: {pattern.value}"


def _possessive(pattern: str) -> bool:
    return any(word in str(_parser.parse(pattern)) for word in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP"))


def tests_without_guarantee(source: str) -> Iterator[str]:
    """Each test whose docstring does not state what it guarantees."""
    for function in _functions(source):
        if function.name.startswith("test_") and not (ast.get_docstring(function) or "").strip():
            yield f"{function.lineno}: {function.name} has no docstring"


def _functions(source: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _cleans_up(node: ast.ExceptHandler) -> bool:
    """Whether it is `except BaseException` and ends by raising what came."""
    last = node.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return passes_on and isinstance(node.type, ast.Name) and node.type.id == "BaseException"


def _given_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that this source gives: of classes, functions, parameters, variables and fields.

    The parameters of a method marked @override have the names that its base gave them.
    """
    inherited = {argument for node in ast.walk(tree) if _overrides(node) for argument in ast.walk(node.args)}
    for node in ast.walk(tree):
        if node in inherited:
            continue
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno


def _overrides(node: ast.AST) -> TypeGuard[Function]:
    marks = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
    return any(ast.unparse(mark).endswith("override") for mark in marks)
