"""What keeps a shadow from making sense: it has to take the calls of the tool it shadows, and neither may act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.spec_faults import unreadable
from tools.tool import Tool


def faults_of_shadow(tool: Tool, tools: Mapping[str, Tool]) -> Iterator[str]:
    """Everything about a tool as a shadow of another of these tools that makes no sense."""
    name = tool.spec.shadow_of
    if name is None:
        if tool.spec.shadow_compare is not None or tool.spec.shadow_share != 1:
            yield "has shadow_compare or shadow_share, but is no shadow; say shadow_of=... or leave them out"
        return
    if tool.spec.fallbacks:
        yield "is a shadow and has fallbacks, which would never be taken; those of the tool it shadows are"
    if tool.spec.shadow_compare is not None:
        yield from unreadable(tool.spec.shadow_compare, "a shadow_compare")
    shadowed = tools.get(name)
    if shadowed is None:
        yield f"is a shadow of {name!r}, which is not registered"
    else:
        yield from _of_pair(tool, shadowed, tools)


def _of_pair(tool: Tool, shadowed: Tool, tools: Mapping[str, Tool]) -> Iterator[str]:
    if shadowed is tool:
        yield "is a shadow of itself"
        return
    if tool.effect != "read" or shadowed.effect != "read":
        yield f"is a shadow of {shadowed.name!r}; only reads can be compared"
    if shadowed.spec.shadow_of is not None:
        yield f"is a shadow of {shadowed.name!r}, which is a shadow itself"
    others = [each.name for each in tools.values() if each.spec.shadow_of == shadowed.name]
    if tool.name != others[0]:
        yield f"is a shadow of {shadowed.name!r}, which has one already: {others[0]!r}; one candidate at a time"
    yield from _of_arguments(tool, shadowed)


def _of_arguments(tool: Tool, shadowed: Tool) -> Iterator[str]:
    if not tool.arguments.open and not shadowed.arguments.open:
        for name in sorted(shadowed.arguments.names - tool.arguments.names):
            yield f"is a shadow of {shadowed.name!r} and does not take its argument {name!r}"
    if not shadowed.arguments.open:
        for name in sorted(set(tool.input_schema.get("required", ())) - shadowed.arguments.names):
            yield f"is a shadow of {shadowed.name!r} and needs {name!r}, which that tool does not have"
