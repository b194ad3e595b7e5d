"""LangChain tools (and so those of MCP servers) seen as callables of ours, without importing LangChain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.callee import Callee, Unusable
from tools.json_arguments import SchemaArguments
from tools.schema import Arguments, of_model


def is_base_tool(given: object) -> bool:
    """Whether this is an instance of LangChain's BaseTool."""
    return any(c.__name__ == "BaseTool" and c.__module__.startswith("langchain_core.") for c in type(given).__mro__)


def arguments_of(tool: Any) -> Arguments:
    """What the tool accepts from a caller. Raises Unusable for what only LangGraph's ToolNode can inject."""
    declared = tool.tool_call_schema
    if isinstance(declared, Mapping):
        return SchemaArguments(declared)
    if injected := sorted(set(_fields(tool.get_input_schema())) - set(_fields(declared)) - _injected_ids(tool)):
        raise Unusable(f"wants {injected[0]!r} injected by LangGraph's ToolNode; take a ToolContext instead")
    if hasattr(declared, "model_validate_json"):
        return of_model(declared)
    return SchemaArguments(declared.schema())


def callee_of(tool: Any) -> Callee:
    """How it is called: async where it brings a coroutine of its own, else in a thread. Errors are raised, even where
    the tool would have turned them into text."""
    strict = tool.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})
    if _has_coroutine(tool):

        async def call(**args: Any) -> Any:
            return _content(await strict.ainvoke(_request(strict, args)))

        return Callee(call, is_async=True)
    return Callee(lambda **args: _content(strict.invoke(_request(strict, args))), is_async=False)


def _fields(model: Any) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(model, "model_fields", None) or getattr(model, "__fields__", {})
    return fields


def _injected_ids(tool: Any) -> set[str]:
    """Arguments that take the id of the call, which we give."""
    fields = _fields(tool.get_input_schema())
    return {name for name, field in fields.items() if any(_is_id(m) for m in getattr(field, "metadata", ()))}


def _is_id(marker: Any) -> bool:
    kind = marker if isinstance(marker, type) else type(marker)
    return kind.__name__ == "InjectedToolCallId"


def _has_coroutine(tool: Any) -> bool:
    if hasattr(tool, "coroutine"):
        return tool.coroutine is not None
    defining = next(c for c in type(tool).__mro__ if "_arun" in vars(c))
    return defining.__name__ != "BaseTool"


def _request(tool: Any, args: dict[str, Any]) -> dict[str, Any]:
    """As a model would call it: only then an artifact comes with the answer, and an id can be injected."""
    if tool.response_format == "content_and_artifact" or _injected_ids(tool):
        return {"type": "tool_call", "id": "call", "name": tool.name, "args": args}
    return args


def _content(answer: Any) -> Any:
    """The result of a call: structured content where a server sent it, else the content itself; a list of text blocks
    is one text."""
    if type(answer).__name__ != "ToolMessage":
        return answer
    if answer.status == "error":
        raise RuntimeError(str(answer.content))
    if isinstance(answer.artifact, dict) and answer.artifact.get("structured_content") is not None:
        return answer.artifact["structured_content"]
    content = answer.content
    if isinstance(content, list) and all(isinstance(b, dict) and b.get("type") == "text" for b in content):
        return "\n".join(block["text"] for block in content)
    return content
