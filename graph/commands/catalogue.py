"""`tools` and `templates`: what a run may use, and which goals need no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graph.commands.looking import show_table
from graph.commands.printing import print_json, show, write_out
from graph.commands.shared import load_settings, registry_for
from plans.errors import UnknownTool
from plans.wording import listed, nearest

if TYPE_CHECKING:
    from tools.tool import Tool


def list_tools(toolkits: Sequence[str], *, as_json: bool) -> None:
    """The tools by toolkit, with effect and risk."""
    registry = registry_for(load_settings(toolkits))
    if as_json:
        print_json({"tools": [_tool(tool) for tool in registry.values()]})
        return
    rows = [
        (tool.name, tool.toolkit, tool.effect, tool.risk, " ".join(tool.description.split()))
        for tool in registry.values()
    ]
    show_table(("tool", "toolkit", "effect", "risk", "what it does"), rows, "no tools")


def show_tool(name: str, toolkits: Sequence[str], *, as_json: bool) -> None:
    """One tool in full."""
    registry = registry_for(load_settings(toolkits))
    if name not in registry:
        close = nearest(name, registry)
        meant = f"did you mean {close}?" if close else f"registered: {listed(registry, 30)}"
        raise UnknownTool(f"there is no tool {name!r}; {meant}")
    shown = _tool(registry[name])
    if as_json:
        print_json(shown)
        return
    import yaml

    write_out(yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=110))


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "toolkit": tool.toolkit,
        **tool.spec.model_dump(mode="json"),
        "arguments": tool.input_schema,
        "result": tool.output_schema,
    }


def list_templates(language: str, *, as_json: bool) -> None:
    """The templates, with goals that each of them serves."""
    from rich.text import Text

    from graph.registries import templates_from
    from nodes.templates import overview

    found: list[Any] = overview(templates_from(load_settings([])), language)
    if as_json:
        print_json({"templates": found})
        return
    for template in found:
        show(Text.assemble((template["name"], "bold"), f"  {template['title']}  ", (f"[{template['toolkit']}]", "dim")))
        for parameter in template["parameters"]:
            needed = "" if parameter["required"] else " (may be left out)"
            show(Text(f"  {parameter['name']}: {parameter['about'] or ''}{needed}", style="dim"))
        for example in template["examples"]:
            show(f"  {example}")
