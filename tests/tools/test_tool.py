"""Tests of calling a tool without safeguards: arguments in, JSON out, the context in its place."""

from __future__ import annotations

import asyncio
import contextvars
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from plans.failure import Failure, ToolFailure
from tests.tools.calls import context, tool_of
from tools.context import ToolContext

LANGUAGE: contextvars.ContextVar[str] = contextvars.ContextVar("LANGUAGE", default="none")


async def test_arguments_are_checked_at_every_call() -> None:
    """Resolved arguments that do not fit are INVALID_ARGS with every problem, and the function is not called."""
    called: list[str] = []

    def function(order_id: str, limit: int) -> None:
        called.append(order_id)

    with pytest.raises(ToolFailure, match="order_id is missing; limit should be a valid integer") as refused:
        await tool_of(function).invoke({"limit": "5"}, context())
    assert refused.value.code == "INVALID_ARGS"
    assert called == []


@pytest.mark.parametrize("args", [{"amount": "9.90"}, {"amount": 9.9}])
async def test_a_tool_gets_its_context_and_its_types(args: dict[str, Any], tmp_path: Path) -> None:
    """The context arrives under whatever name, money as Decimal, and the result is JSON."""

    async def function(amount: Decimal, *, where: ToolContext) -> dict[str, Any]:
        return {"doubled": amount * 2, "step": where.step_id, "attempt": where.attempt}

    result = await tool_of(function).invoke(args, context(tmp_path))
    assert result == {"doubled": str(Decimal(str(args["amount"])) * 2), "step": "s1", "attempt": 2}


async def test_a_caller_cannot_give_the_context() -> None:
    """An argument named like the context parameter is refused, even where any argument may be given."""

    def function(ctx: ToolContext, **more: Any) -> str:
        return ctx.run_id

    tool = tool_of(function)
    assert [place for place, _ in tool.check_args({"ctx": {"run_id": "other"}, "a": 1})] == ["ctx"]

    def closed(ctx: ToolContext) -> str:
        return ctx.run_id

    assert [place for place, _ in tool_of(closed).check_args({"ctx": {}})] == ["ctx"]
    with pytest.raises(ToolFailure):
        await tool.invoke({"ctx": {}}, context())
    assert await tool.invoke({"a": 1}, context()) == "run-1"


async def test_context_variables_reach_async_and_sync_tools() -> None:
    """What the run has set (a trace, a language) is seen by the function, wherever it runs."""

    async def asynchronous() -> str:
        await asyncio.sleep(0)
        return LANGUAGE.get()

    def synchronous() -> str:
        return LANGUAGE.get()

    LANGUAGE.set("zh")
    assert await tool_of(asynchronous).invoke({}, context()) == "zh"
    assert await tool_of(synchronous).invoke({}, context()) == "zh"


async def test_a_plain_function_may_return_something_to_await() -> None:
    """A sync wrapper around an async function works; what it awaits runs on the loop."""

    async def inner(name: str) -> str:
        await asyncio.sleep(0)
        return name

    tool = tool_of(lambda name: inner(name.upper()), name="t")
    assert await tool.invoke({"name": "x"}, context()) == "X"


async def test_what_a_function_raises_comes_out() -> None:
    """invoke has no safeguards: the exception is the function's own, from a thread as well."""

    def function() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await tool_of(function).invoke({}, context())


async def test_a_probe_tells_what_became_of_an_effect() -> None:
    """A result means that it happened, None that it did not; an exception is a failure to find out."""

    async def probe(key: str, ctx: ToolContext) -> dict[str, str] | None:
        if key == "broken":
            raise ConnectionResetError
        return {"key": key, "run": ctx.run_id} if key == "known" else None

    tool = tool_of(lambda: None, name="pay", effect="irreversible", probe=probe)
    assert await tool.ask_probe("known", context()) == {"key": "known", "run": "run-1"}
    assert await tool.ask_probe("other", context()) is None
    failure = await tool.ask_probe("broken", context())
    assert isinstance(failure, Failure)
    assert failure.code == "UNAVAILABLE"


async def test_a_probe_has_a_deadline_too() -> None:
    """A probe that hangs is a failure to find out, after the tool's own time."""

    async def probe(key: str) -> None:
        await asyncio.sleep(60)

    tool = tool_of(lambda: None, name="send", effect="irreversible", probe=probe, timeout_s=0.05)
    failure = await tool.ask_probe("k", context())
    assert isinstance(failure, Failure)
    assert failure.code == "TIMEOUT"


async def test_a_tool_without_probe_cannot_tell() -> None:
    """Without a probe what became of an effect stays unknown."""
    failure = await tool_of(lambda: None, name="send", effect="irreversible").ask_probe("k", context())
    assert isinstance(failure, Failure)
    assert failure.code == "UNKNOWN_OUTCOME"
