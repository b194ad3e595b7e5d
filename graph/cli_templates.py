"""The `surestep templates` commands. What they do stands in `graph/commands`, imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graph.cli_options import Json, Toolkits

templates_app = typer.Typer(
    help="The plans that need no planner, and how they have served.", invoke_without_command=True
)

Language = Annotated[Literal["en", "zh"], typer.Option("--language", help="Language of titles.")]


@templates_app.callback()
def templates(context: typer.Context, language: Language = "en", json: Json = False) -> None:
    """The plans that need no planner, and how they have served; without a command, list them."""
    context.obj = json
    if context.invoked_subcommand is None:
        templates_list(context, language)


@templates_app.command("list")
def templates_list(context: typer.Context, language: Language = "en", json: Json = False) -> None:
    """List them, with example goals and how each has served."""
    from graph.commands.templates import list_templates

    list_templates(language, as_json=json or context.obj)


@templates_app.command("learn")
def templates_learn(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A clean run: its thread or run id.")],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE|FOLDER", help="Write it there (a folder is made); default: print it."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name; default: the file's, or from the goal.")] = None,
    toolkit: Toolkits = None,
    json: Json = False,
) -> None:
    """Make a template of a clean run, to be reviewed."""
    from graph.commands.templates import learn_template

    learn_template(run, to, name, toolkit or [], as_json=json or context.obj)


@templates_app.command("restore")
def templates_restore(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TEMPLATE", help="Its name.")],
    json: Json = False,
) -> None:
    """Match a template again that was set aside."""
    from graph.commands.templates import restore_template

    restore_template(name, as_json=json or context.obj)
