"""`runs`, `show`, `tools` and `templates`: what there is to see."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graph.commands.shared import console, load_settings, opened, print_json, say, waited
from plans.errors import InvalidInput, UnknownTool

if TYPE_CHECKING:
    from graph.result import RunResult, RunSummary
    from tools.registry import Registry
    from tools.tool import Tool


def list_runs(limit: int, *, as_json: bool) -> None:
    """The latest runs, newest first."""

    async def work() -> list[RunSummary]:
        async with opened([]) as agent:
            return await agent.runs(limit)

    found = waited(work)
    if as_json:
        print_json({"runs": [run.model_dump(mode="json") for run in found]})
        return
    rows = [(run.thread_id, run.status, f"{run.created_at:%Y-%m-%d %H:%M}", run.goal[:70]) for run in found]
    _table(("thread", "status", "began", "goal"), rows, "no run yet")


def show_thread(thread: str, output: str | None, *, as_json: bool) -> None:
    """Where a run stands, or one step's stored result."""

    async def work() -> RunResult | bytes:
        async with opened([]) as agent:
            result = await agent.show(thread)
            if output is None:
                return result
            step = next((step for step in result.steps if step.id == output), None)
            if step is None or step.output_ref is None:
                finished = ", ".join(step.id for step in result.steps if step.output_ref) or "none"
                raise InvalidInput(f"step {output!r} has no stored result; steps that have: {finished}")
            return await agent.output(thread, step.output_ref)

    found = waited(work)
    if isinstance(found, bytes):
        sys.stdout.buffer.write(found + b"\n")
    elif as_json:
        print_json(found.as_json())
    else:
        _show(found)


def _show(result: RunResult) -> None:
    from graph.commands.ending import show_end

    out = console()
    out.print(result.goal, markup=False)
    rows = [
        (step.id, step.tool or "llm", step.status, str(step.attempts), f"{step.elapsed_s:.2f} s",
         step.failure.message if step.failure else step.degraded or step.title or "")
        for step in result.steps
    ]  # fmt: skip
    _table(("step", "tool", "status", "attempts", "time", ""), rows, "no plan")
    show_end(result)


def _registry(toolkits: Sequence[str]) -> Registry:
    from graph.registries import registry_from

    registry, notices = registry_from(load_settings(toolkits))
    for notice in notices:
        say(notice)
    return registry


def list_tools(toolkits: Sequence[str], *, as_json: bool) -> None:
    """The tools by toolkit, with effect and risk."""
    registry = _registry(toolkits)
    if as_json:
        print_json({"tools": [_tool(tool) for tool in registry.values()]})
        return
    rows = [
        (tool.toolkit, tool.name, tool.effect, tool.risk, next(iter(tool.description.splitlines()), "")[:70])
        for tool in registry.values()
    ]
    _table(("toolkit", "tool", "effect", "risk", "what it does"), rows, "no tools")


def show_tool(name: str, toolkits: Sequence[str], *, as_json: bool) -> None:
    """One tool in full."""
    registry = _registry(toolkits)
    if name not in registry:
        raise UnknownTool(f"there is no tool {name!r}; registered: {', '.join(registry)}")
    shown = _tool(registry[name])
    if as_json:
        print_json(shown)
        return
    import yaml

    sys.stdout.write(yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=110))


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "toolkit": tool.toolkit,
        **tool.spec.model_dump(mode="json"),
        "arguments": tool.input_schema,
        "result": tool.output_schema,
    }


def list_templates(language: str, *, as_json: bool) -> None:
    """The templates, with goals that each of them serves."""
    from graph.registries import templates_from
    from nodes.templates import overview

    found: list[Any] = overview(templates_from(load_settings([])), language)
    if as_json:
        print_json({"templates": found})
        return
    out = console()
    for template in found:
        out.print(f"{template['name']}: {template['title']}  [{template['toolkit']}]", markup=False)
        for example in template["examples"]:
            out.print(f"  {example}", style="dim", markup=False)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    from rich.table import Table
    from rich.text import Text

    if not rows:
        console().print(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name == names[0])
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
