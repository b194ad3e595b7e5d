"""What keeps the fallbacks of a tool from ever helping, or from being safe: every fault, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.fallbacks import Fallback
from tools.mocks import NoMock, mock_value
from tools.spec import EFFECTS
from tools.spec_faults import unreadable
from tools.tool import Tool


def fallback_faults(tool: Tool, tools: Mapping[str, Tool]) -> Iterator[str]:
    """The faults of all fallbacks of one tool."""
    for fallback in tool.spec.fallbacks:
        match fallback.kind:
            case "cached":
                yield from _of_cached(tool, fallback)
            case "tool":
                yield from _of_tool(tool, fallback, tools)
            case "mock":
                yield from _of_mock(tool, fallback)
    yield from _of_order(tool)


def _of_order(tool: Tool) -> Iterator[str]:
    """What stands behind a mock or a code is never reached: a mock always answers, a code ends the step."""
    kinds = [fallback.kind for fallback in tool.spec.fallbacks]
    for kind in ("mock", "code"):
        if kind in kinds[:-1]:
            yield f"has a fallback behind its {kind}, which is never reached; put the {kind} last"
    if kinds.count("cached") > 1:
        yield "falls back to its kept results twice; the longer one is enough"


def _of_cached(tool: Tool, fallback: Fallback) -> Iterator[str]:
    if tool.effect != "read":
        yield f"is {tool.effect} and falls back to a kept result; only results of reads are kept"
    ttl_s = tool.spec.cache_ttl_s
    if ttl_s is not None and fallback.cached is not None and fallback.cached <= ttl_s:
        yield (
            f"falls back to a result kept for {fallback.cached:g} s, but gives one that is up to {ttl_s:g} s old "
            "without a fallback (cache_ttl_s); make cached longer"
        )


def _of_mock(tool: Tool, fallback: Fallback) -> Iterator[str]:
    if tool.effect != "read":
        yield f"is {tool.effect} and falls back to a mock; an effect that was only made up has not happened"
        return
    try:
        mock_value(tool, fallback)
    except NoMock as error:
        told = 'give one as {"mock": {"value": ...}}' if fallback.mock is True else "give one that is a result of it"
        yield f"falls back to a mock that cannot be made: {error}; {told}"


def _of_tool(tool: Tool, fallback: Fallback, tools: Mapping[str, Tool]) -> Iterator[str]:
    other = tools.get(fallback.tool or "")
    if other is None:
        yield f"falls back to {fallback.tool!r}, which is not registered"
        return
    if other is tool:
        yield "falls back to itself"
    if other.spec.shadow_of is not None:
        yield f"falls back to {other.name!r}, which is a shadow and never called on its own"
    if EFFECTS.index(other.effect) > EFFECTS.index(tool.effect):
        yield f"is {tool.effect} and falls back to {other.name!r}, which is {other.effect}: a stronger effect"
    for expression in (fallback.args or {}).values():
        yield from unreadable(expression, f"an argument for its fallback {other.name!r}")
    yield from _of_arguments(tool, fallback, other)


def _of_arguments(tool: Tool, fallback: Fallback, other: Tool) -> Iterator[str]:
    if fallback.args is not None:
        if not other.arguments.open:
            for name in sorted(fallback.args.keys() - other.arguments.names):
                yield f"gives its fallback {other.name!r} the argument {name!r}, which that tool does not have"
        handed = frozenset(fallback.args)
    elif tool.arguments.open:
        return
    else:
        handed = tool.arguments.names & other.arguments.names
    for name in sorted(set(other.input_schema.get("required", ())) - handed):
        yield f"falls back to {other.name!r}, which would lack its argument {name!r}; map it in args"
