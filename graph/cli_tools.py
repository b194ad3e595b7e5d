"""The `surestep tools` commands: options and words. What they do stands in `graph/commands`, imported when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graph.cli_options import Json, Toolkits

if TYPE_CHECKING:
    from graph.commands.tool_changes import Asked

tools_app = typer.Typer(help="The tools a run may use, and their settings.", invoke_without_command=True)

ToolName = Annotated[str, typer.Argument(metavar="TOOL", help="Its name.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="WHO", help="Who changes it, for the record; default: user@host.")
]


@tools_app.callback()
def tools(context: typer.Context, toolkit: Toolkits = None, json: Json = False) -> None:
    """The tools a run may use, and their settings; without a command, list them."""
    context.obj = (toolkit or [], json)
    if context.invoked_subcommand is None:
        tools_list(context)


def _asked(context: typer.Context, toolkit: list[str] | None, json: bool, by: str | None = None) -> Asked:
    """The options, which may stand before or after the subcommand."""
    from graph.commands.tool_changes import Asked

    before, as_json = context.obj
    return Asked([*before, *(toolkit or [])], json or as_json, by)


@tools_app.command("list")
def tools_list(context: typer.Context, toolkit: Toolkits = None, json: Json = False) -> None:
    """List the tools a run may use, and what is special about each now."""
    from graph.commands.catalogue import list_tools

    list_tools(_asked(context, toolkit, json))


@tools_app.command("show")
def tools_show(context: typer.Context, name: ToolName, toolkit: Toolkits = None, json: Json = False) -> None:
    """Show one tool: what it takes, gives, and how it is safeguarded now."""
    from graph.commands.catalogue import show_tool

    show_tool(name, _asked(context, toolkit, json))


@tools_app.command("set")
def tools_set(
    context: typer.Context,
    name: ToolName,
    changes: Annotated[
        list[str],
        typer.Argument(metavar="SETTING=VALUE...", help="As in timeout_s=3; an empty VALUE takes it back."),
    ],
    toolkit: Toolkits = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Change settings of a tool; running workers follow within two seconds."""
    from graph.commands.tool_changes import set_tool

    set_tool(name, changes, _asked(context, toolkit, json, by))


@tools_app.command("enable")
def tools_enable(
    context: typer.Context, name: ToolName, toolkit: Toolkits = None, by: By = None, json: Json = False
) -> None:
    """Switch a tool on; its calls that failed again and again may be made once more."""
    from graph.commands.tool_changes import switch_tool

    switch_tool(name, _asked(context, toolkit, json, by), on=True)


@tools_app.command("disable")
def tools_disable(
    context: typer.Context, name: ToolName, toolkit: Toolkits = None, by: By = None, json: Json = False
) -> None:
    """Switch a tool off: steps that want it go to its fallback, or fail."""
    from graph.commands.tool_changes import switch_tool

    switch_tool(name, _asked(context, toolkit, json, by), on=False)


@tools_app.command("reset")
def tools_reset(
    context: typer.Context, name: ToolName, toolkit: Toolkits = None, by: By = None, json: Json = False
) -> None:
    """Take back whatever was changed about a tool: all as declared."""
    from graph.commands.tool_changes import reset_tool

    reset_tool(name, _asked(context, toolkit, json, by))


@tools_app.command("promote")
def tools_promote(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CANDIDATE", help="A tool that is declared as the shadow of another.")],
    after: Annotated[int, typer.Option("--after", metavar="N", min=1, help="Agreements in a row that it needs.")] = 100,
    toolkit: Toolkits = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Have a candidate answer the calls of the tool it shadows, once it has agreed often enough."""
    from graph.commands.tool_changes import promote_tool

    promote_tool(name, after, _asked(context, toolkit, json, by))


@tools_app.command("demote")
def tools_demote(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The tool that was promoted.")],
    toolkit: Toolkits = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Take a promotion back: the tool answers its calls itself again."""
    from graph.commands.tool_changes import demote_tool

    demote_tool(name, _asked(context, toolkit, json, by))


@tools_app.command("history")
def tools_history(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="TOOL", help="Only this one.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many changes.")] = 50,
    toolkit: Toolkits = None,
    json: Json = False,
) -> None:
    """What was changed about tools, by whom and when; the newest first."""
    from graph.commands.tool_changes import show_history

    show_history(name, limit, _asked(context, toolkit, json))
