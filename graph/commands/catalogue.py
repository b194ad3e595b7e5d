"""`tools`: what a run may use, and what is special about it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graph.commands.glancing import look_at
from graph.commands.looking import show_table
from graph.commands.printing import print_json, say, write_out
from graph.commands.shared import load_settings, registry_for
from plans.errors import UnknownTool
from plans.wording import listed, nearest

if TYPE_CHECKING:
    from graph.commands.glancing import Look
    from graph.commands.tool_changes import Asked
    from graph.tool_standing import ToolStanding
    from tools.tool import Tool


def list_tools(asked: Asked) -> None:
    """The tools by toolkit, with effect, risk, and what is special about them now; shadows too."""
    settings = load_settings(asked.toolkits)
    registry = registry_for(settings)
    look = look_at(settings, registry)
    if asked.as_json:
        tools = [_tool(tool, look.standing.get(tool.name)) for tool in registry.declared.values()]
        print_json({"tools": tools, "looked_at": look.why is None, "why": look.why})
        return
    rows = [
        (tool.name, tool.toolkit, tool.effect, tool.risk, _state(tool, look), " ".join(tool.description.split()))
        for tool in registry.declared.values()
    ]
    show_table(("tool", "toolkit", "effect", "risk", "now", "what it does"), rows, "no tools")
    if look.why is not None:
        say(f"settings and breakers were not looked at: {look.why}")


def show_tool(name: str, asked: Asked) -> None:
    """One tool in full."""
    settings = load_settings(asked.toolkits)
    registry = registry_for(settings)
    if name not in registry.declared:
        close = nearest(name, registry.declared)
        meant = f"did you mean {close}?" if close else f"registered: {listed(registry.declared, 30)}"
        raise UnknownTool(f"there is no tool {name!r}; {meant}")
    look = look_at(settings, registry, name)
    shown = _tool(registry.declared[name], look.standing.get(name))
    if name in look.differences:
        shown["now"]["differences"] = [each.as_json() for each in look.differences[name]]
    if asked.as_json:
        print_json({**shown, "looked_at": look.why is None, "why": look.why})
        return
    import yaml

    write_out(yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=110))
    if look.why is not None:
        say(f"settings and breaker were not looked at: {look.why}")


def _state(tool: Tool, look: Look) -> str:
    standing = look.standing.get(tool.name)
    unset = "not set up" if tool.to_configure else ""
    shadow = f"shadow of {tool.spec.shadow_of}" if tool.spec.shadow_of and standing is None else ""
    return ", ".join(word for word in (unset, shadow, standing.state if standing else "") if word)


def _tool(tool: Tool, standing: ToolStanding | None) -> dict[str, Any]:
    """What is declared, and under `now` what is true of it now; None where that was not looked at."""
    return {
        "toolkit": tool.toolkit,
        **tool.spec.model_dump(mode="json"),
        "now": standing.as_json() if standing else None,
        "arguments": tool.input_schema,
        "result": tool.output_schema,
    }
