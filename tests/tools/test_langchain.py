"""Tests of LangChain tools, and so MCP tools, as tools of ours."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langchain_core.tools.base import InjectedToolArg
from pydantic import BaseModel, Field

from plans.errors import ConfigurationError
from plans.failure import ToolFailure
from tests.tools.calls import context, tool_of
from tools.registry import Registry, Toolkit


@tool
def multiply(a: int, b: Annotated[int, Field(le=10)] = 2) -> dict[str, Any]:
    """Multiply two numbers."""
    return {"product": a * b, "thread": threading.current_thread().name}


@tool
async def fetch(url: str) -> str:
    """Fetch a page."""
    return f"{url} on {threading.current_thread().name}"


class Sized(BaseModel):
    sku: str


class Classic(BaseTool):
    name: str = "stock.of/sku"
    description: str = "Stock by SKU."
    args_schema: type[BaseModel] = Sized

    def _run(self, sku: str) -> str:
        return f"3 of {sku}"


def from_server(content: Any, artifact: Any = None, **more: Any) -> StructuredTool:
    """A tool as the MCP adapters make it: a dict as schema, content and an artifact as answer."""

    async def call(**arguments: Any) -> tuple[Any, Any]:
        return content, artifact or {"arguments": arguments}

    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    }
    return StructuredTool(
        name="search", description="Search.", args_schema=schema, coroutine=call,
        response_format="content_and_artifact", **more,
    )  # fmt: skip


async def test_a_tool_of_langchain_keeps_its_name_schema_and_description() -> None:
    """Name, description and limits come from the tool; arguments are checked strictly before it is called."""
    ours = tool_of(multiply)
    assert (ours.name, ours.description) == ("multiply", "Multiply two numbers.")
    assert ours.input_schema["properties"]["b"] == {"type": "integer", "maximum": 10, "default": 2}
    assert dict(ours.check_args({"a": "3", "b": 11, "c": 1})).keys() == {"a", "b", "c"}
    assert (await ours.invoke({"a": 3}, context()))["product"] == 6


async def test_plain_tools_run_in_our_threads_and_async_ones_on_the_loop() -> None:
    """A hung LangChain tool can only ever take threads of our own pool."""
    assert (await tool_of(multiply).invoke({"a": 3}, context()))["thread"].startswith("surestep-tool-")
    assert await tool_of(fetch).invoke({"url": "u"}, context()) == f"u on {threading.main_thread().name}"
    assert (tool_of(multiply).spec.isolation, tool_of(fetch).spec.isolation) == ("thread", "async")


async def test_a_foreign_name_is_made_safe() -> None:
    """A subclass of BaseTool works; what models may not have in a name becomes _."""
    ours = tool_of(Classic())
    assert ours.name == "stock_of_sku"
    assert await ours.invoke({"sku": "x"}, context()) == "3 of x"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (from_server([{"type": "text", "text": "hi"}], {"structured_content": {"hits": 3}}), {"hits": 3}),
        (from_server([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb"),
        (from_server("plain"), "plain"),
        (from_server([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}]), [
            {"type": "text", "text": "a"}, {"type": "image", "url": "u"},
        ]),
    ],
)  # fmt: skip
async def test_an_answer_of_a_server_is_its_structured_content_or_its_text(answer: BaseTool, result: Any) -> None:
    """Later steps can refer into structured content; text blocks are one text."""
    ours = tool_of(answer)
    assert dict(ours.check_args({})).keys() == {"q"}
    assert await ours.invoke({"q": "x"}, context()) == result


async def test_an_error_is_an_error_even_where_the_tool_would_have_told_a_model() -> None:
    """handle_tool_error turns errors into text for a chat; here they stay errors, and the user's tool is unchanged."""

    def broken(q: str) -> str:
        raise ToolException("no index")

    theirs = StructuredTool.from_function(broken, description="x", handle_tool_error=True)
    with pytest.raises(ToolException, match="no index"):
        await tool_of(theirs).invoke({"q": "x"}, context())
    assert theirs.handle_tool_error is True


async def test_arguments_that_only_langgraph_injects_are_refused_at_load() -> None:
    """A tool that wants a graph's state or store cannot be called from a plan, and says so at once."""

    @tool
    def with_state(q: str, state: Annotated[dict[str, Any], InjectedToolArg]) -> str:
        """Needs state."""
        return q

    with pytest.raises(ConfigurationError, match="'state' injected"):
        tool_of(with_state)


async def test_an_injected_call_id_is_given() -> None:
    """A tool that wants the id of its call gets one."""

    @tool
    def with_id(q: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Wants an id."""
        return f"{q}{call_id}"

    ours = tool_of(with_id)
    assert ours.check_args({"q": "x"}) == []
    assert await ours.invoke({"q": "x"}, context()) == "xcall"


async def test_a_tool_that_brings_its_schema_gets_no_other() -> None:
    """args_schema beside a LangChain tool is refused: two truths about one tool."""
    toolkit = Toolkit("k")
    toolkit.add(multiply, args_schema={"properties": {}}, effect="read")
    with pytest.raises(ConfigurationError, match="brings its own args_schema"):
        Registry.of(toolkit)


async def test_invalid_arguments_never_reach_a_tool_of_a_server() -> None:
    """What the server's schema refuses is INVALID_ARGS here."""
    with pytest.raises(ToolFailure, match="q should be string"):
        await tool_of(from_server("x")).invoke({"q": 3}, context())
