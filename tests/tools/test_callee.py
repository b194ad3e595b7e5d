"""Tests of how callables are read: whatever can be called, with annotations as types or as text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from tools.callee import NOTHING, Unusable, description_of, name_of, read
from tools.context import ToolContext

if TYPE_CHECKING:
    from decimal import Decimal


class Shop:
    """A shop."""

    def __init__(self, country: str) -> None:
        self.country = country

    def find(self, name: str) -> str:
        """Find by name."""
        return f"{self.country}:{name}"

    async def fetch(self, name: str) -> str:
        return f"{self.country}:{name}"

    def __call__(self, name: str, /) -> str:
        return f"called {self.country}:{name}"

    @staticmethod
    def plain(name: str) -> str:
        return name


class Later:
    async def __call__(self, name: str) -> str:
        return name


async def with_context(name: str, *, run: ToolContext) -> str:
    return run.run_id + name


def with_optional_context(name: str, here: ToolContext | None = None) -> str:
    return name


def with_old_optional_context(name: str, here: Optional[ToolContext] = None) -> str:  # noqa: UP045
    return name


def with_annotated_context(name: str, here: Annotated[ToolContext, "why"]) -> str:
    return name


def closed(first: int, /, ctx: ToolContext, *, last: int = 3) -> int:
    return first + last


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@wrapped
def decorated(name: str, count: int = 1) -> str:
    """Decorated."""
    return name * count


def names_of(function: Callable[..., Any]) -> list[str]:
    """The parameters that a caller may give."""
    return [parameter.name for parameter in read(function, {})[1].parameters]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (with_context, "run"),
        (with_optional_context, "here"),
        (with_old_optional_context, "here"),
        (with_annotated_context, "here"),
        (closed, "ctx"),
    ],
)
def test_the_context_is_found_by_its_annotation(function: Callable[..., Any], name: str) -> None:
    """Whatever its name and however it is written, the context parameter is found, and is no argument."""
    assert read(function, {})[0].context == name
    assert name not in names_of(function)


def test_everything_that_can_be_called_is_read() -> None:
    """Functions, methods, static methods, callable objects and partials have the parameters that are left to give."""
    shop = Shop("fr")
    assert names_of(shop.find) == ["name"]
    assert names_of(Shop.plain) == ["name"]
    assert names_of(shop) == ["name"]
    assert names_of(decorated) == ["name", "count"]
    assert names_of(functools.partial(decorated, count=3)) == ["name"]
    assert names_of(functools.partial(decorated, "x")) == ["count"]
    assert names_of(functools.partial(functools.partial(decorated, count=3), "x")) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Shop("fr").find, False),
        (Shop("fr").fetch, True),
        (Later(), True),
        (functools.partial(with_context, "x"), True),
        (decorated, False),
    ],
)
def test_async_is_seen_through_wrappings(function: Callable[..., Any], expected: bool) -> None:
    """A method, callable object or partial of an async function is async."""
    assert read(function, {})[0].is_async is expected


def test_arguments_get_to_their_places(tmp_path: Path) -> None:
    """Positional-only parameters, keywords, the context and what a partial has fixed all arrive."""
    ctx = ToolContext.bare(tmp_path)
    assert read(closed, {})[0].bind({"first": 1, "last": 5}, ctx)() == 6
    assert read(Shop("fr"), {})[0].bind({"name": "x"}, ctx)() == "called fr:x"
    assert read(functools.partial(decorated, count=3), {})[0].bind({"name": "ab"}, ctx)() == "ababab"


def test_local_types_are_found_where_the_tool_is_declared() -> None:
    """An annotation as text that names a local class is read with the names around the declaration."""

    class Local:
        pass

    def function(x: Local) -> Local:
        return x

    with pytest.raises(Unusable, match="Local"):
        read(function, {})
    assert read(function, {"Local": Local})[1].parameters[0].annotation is Local


def test_a_context_imported_for_type_checkers_is_known() -> None:
    """A ToolContext that only TYPE_CHECKING imports is a context all the same."""
    function = _function("def f(a: int, run: 'ToolContext') -> int: return a")
    assert read(function, {})[0].context == "run"


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    """A type that only TYPE_CHECKING imports is refused with its name and what to do."""

    def function(amount: Decimal) -> None: ...

    with pytest.raises(Unusable, match=r"Decimal.*TYPE_CHECKING"):
        read(function, {})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(*names: str): ...", r"\*names"),
        ("def f(self, a: int): ...", "add it from an instance"),
        ("def f(a: int): yield a", "generator"),
        ("async def f(a: int): yield a", "generator"),
        ("class f: ...", "is a class"),
    ],
)
def test_what_cannot_be_a_tool_is_told_why(source: str, said: str) -> None:
    """Each kind of thing that cannot be called with named arguments is refused in words."""
    with pytest.raises(Unusable, match=said):
        read(_function(source), {})


def test_something_without_a_signature_is_told_so() -> None:
    """A builtin that hides its parameters is refused, not guessed at."""
    with pytest.raises(Unusable, match="no signature"):
        read(min, {})


def test_extras_are_what_keyword_arguments_say() -> None:
    """**kwargs open the arguments, with their type if they have one."""
    assert read(lambda a: a, {})[1].extras is NOTHING
    assert read(lambda **more: more, {})[1].extras is Any
    assert read(_function("def f(**more: int): ..."), {})[1].extras is int


def test_the_result_of_an_awaitable_is_what_it_gives() -> None:
    """A plain function that returns an awaitable of a type returns that type."""

    def function() -> Awaitable[int]:
        return with_number()

    assert read(function, {})[1].returns is int


async def with_number() -> int:
    return 1


def test_names_and_descriptions() -> None:
    """A tool is called like its function, or like the class of its object, and described by the docstring."""
    shop = Shop("fr")
    assert [name_of(f) for f in (shop.find, decorated, shop, functools.partial(decorated))] == [
        "find",
        "decorated",
        "shop",
        "decorated",
    ]
    assert description_of(shop.find) == "Find by name."
    assert description_of(functools.partial(decorated, count=2)) == "Decorated."
    assert description_of(shop) == "A shop."
    assert description_of(with_number) == ""


def _function(source: str) -> Any:
    """What a line of source declares as f."""
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 (each line stands in this file)
    assert inspect.isclass(scope["f"]) or callable(scope["f"])
    return scope["f"]
