"""The `surestep tools` commands: options and words. What they do stands in `graph/commands/catalogue.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli_options import Json, Toolkits

tools_app = typer.Typer(help="The tools a run may use.", invoke_without_command=True)


@tools_app.callback()
def tools(context: typer.Context, toolkit: Toolkits = None, json: Json = False) -> None:
    """List the tools a run may use."""
    context.obj = (toolkit or [], json)
    if context.invoked_subcommand is None:
        tools_list(context)


@tools_app.command("list")
def tools_list(context: typer.Context, toolkit: Toolkits = None, json: Json = False) -> None:
    """List the tools a run may use."""
    from graph.commands.catalogue import list_tools

    before, as_json = context.obj  # options may stand before or after the subcommand
    list_tools([*before, *(toolkit or [])], as_json=json or as_json)


@tools_app.command("show")
def tools_show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TOOL", help="Its name.")],
    toolkit: Toolkits = None,
    json: Json = False,
) -> None:
    """Show one tool: what it takes, gives, and how it is safeguarded."""
    from graph.commands.catalogue import show_tool

    before, as_json = context.obj
    show_tool(name, [*before, *(toolkit or [])], as_json=json or as_json)
