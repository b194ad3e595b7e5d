"""How a callable wants to be called: its parameters with real types, its context parameter, sync or async."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin

from tools.context import ToolContext

NOTHING = inspect.Parameter.empty
Scope = Mapping[str, Any]
_NAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


class Unusable(Exception):
    """Why something cannot be a tool, for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a caller may give: named parameters, the annotation of **kwargs (NOTHING: there are none), and the
    annotation of the result."""

    parameters: tuple[inspect.Parameter, ...]
    extras: Any
    returns: Any


@dataclass(frozen=True, slots=True)
class Callee:
    """A callable and how to hand arguments to it. `context` names the parameter that takes the ToolContext."""

    function: Callable[..., Any]
    is_async: bool
    context: str | None = None
    positional: tuple[str, ...] = ()

    def bind(self, arguments: Mapping[str, Any], ctx: ToolContext) -> Callable[[], Any]:
        """The call with everything in its place, still to be made."""
        named = dict(arguments)
        if self.context is not None:
            named[self.context] = ctx
        placed = [named.pop(name) for name in self.positional if name in named]
        return functools.partial(self.function, *placed, **named)


def read(function: Callable[..., Any], scope: Scope) -> tuple[Callee, Signature]:
    """Look at a function, method, partial or callable object. `scope` are the names around its declaration, for
    annotations that are text. Raises Unusable."""
    plain, fixed = _unwrapped(function)
    _refuse(plain, function)
    hints = _hints(plain, scope)
    parameters = [_typed(parameter, hints) for parameter in _signature(function) if parameter.name not in fixed]
    if starred := [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]:
        raise Unusable(f"takes *{starred[0]}; arguments of a tool have names")
    context = next((p.name for p in parameters if _is_context(p.annotation)), None)
    named = [p for p in parameters if p.kind in _NAMED]
    callee = Callee(
        function=function,
        is_async=_is_async(plain),
        context=context,
        positional=tuple(p.name for p in named if p.kind is inspect.Parameter.POSITIONAL_ONLY),
    )
    return callee, Signature(
        parameters=tuple(p for p in named if p.name != context),
        extras=_extras(parameters),
        returns=_awaited(hints.get("return", NOTHING)),
    )


def name_of(function: Callable[..., Any]) -> str:
    """The name a callable goes by; of an object, its class's in snake case."""
    plain, _ = _unwrapped(function)
    if name := getattr(plain, "__name__", None):
        if name == "__call__":
            owner = getattr(function, "func", function)
            return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(owner).__name__).lstrip("_")
        return str(name)
    return type(function).__name__


def description_of(function: Callable[..., Any]) -> str:
    """The docstring, cleaned; for a callable object without one of its own, that of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.getdoc(function) or ""
    return inspect.cleandoc(type(function).__call__.__doc__ or "") or inspect.getdoc(type(function)) or ""


def _unwrapped(function: Callable[..., Any]) -> tuple[Callable[..., Any], frozenset[str]]:
    """The function that will run, and the arguments that partials have fixed by name."""
    fixed: set[str] = set()
    while isinstance(function, functools.partial):
        fixed |= set(function.keywords)
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = cast("Callable[..., Any]", function.__call__)  # type: ignore[operator]
    return function, frozenset(fixed)


def _refuse(plain: Callable[..., Any], given: Callable[..., Any]) -> None:
    if inspect.isclass(plain):
        raise Unusable("is a class; give a function or an object that can be called")
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise Unusable("is a generator; return a list instead")
    first = next(iter(_signature(given)), None)
    if first is not None and first.name in ("self", "cls") and first.annotation is NOTHING:
        raise Unusable("is a method without its object; add it from an instance: toolkit.add(instance.method)")


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        raise Unusable("has no signature that Python can read; wrap it in a function") from None


def _hints(plain: Callable[..., Any], scope: Scope) -> dict[str, Any]:
    """The annotations as types. Names that its own module does not know are looked up where it was declared, and a
    ToolContext that is imported for type checkers only is known anyway."""
    around = {"ToolContext": ToolContext, **scope}
    try:
        return typing.get_type_hints(plain, include_extras=True)
    except (NameError, AttributeError, TypeError):
        pass
    try:
        return typing.get_type_hints(plain, localns=around, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise Unusable(f"has an annotation that cannot be read: {error}; import it outside of TYPE_CHECKING") from None


def _typed(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> inspect.Parameter:
    return parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))


def _extras(parameters: list[inspect.Parameter]) -> Any:
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return Any if parameter.annotation is NOTHING else parameter.annotation
    return NOTHING


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(_is_context(part) for part in get_args(annotation))
    return inspect.isclass(annotation) and issubclass(annotation, ToolContext)


def _is_async(plain: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(plain)


def _awaited(returns: Any) -> Any:
    """What a result is once it is awaited."""
    if get_origin(returns) in (Awaitable, Coroutine):
        return get_args(returns)[-1]
    return returns
