"""The `surestep` command: options and subcommands. What they do stands in `graph/commands`, imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import typer.main

from graph.cli_keeping import archive, audit, doctor, sweep
from graph.cli_options import (
    Approve,
    Eager,
    Files,
    Goal,
    Inputs,
    Json,
    LimitOptions,
    PlanFile,
    Plans,
    Request,
    Review,
    ReviewReplans,
    Role,
    Template,
    Thread,
    ThreadId,
    Toolkits,
)
from graph.cli_people import add_people
from graph.cli_policy import policy_app
from graph.cli_templates import templates_app
from graph.cli_token import token
from graph.cli_tools import tools_app

app = typer.Typer(
    name="surestep",
    help="Durable plan-and-execute agent: a goal becomes a plan you can read, and the plan a finished result.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(tools_app, name="tools")
app.add_typer(templates_app, name="templates")
app.add_typer(policy_app, name="policy")

INTERRUPTED = 130
"""What Typer makes of a Ctrl-C; no command of ours ends with it."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"surestep {version('surestep')}")
        raise typer.Exit


@app.callback()
def _settings(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings file; default: surestep.toml if present.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Durable plan-and-execute agent: a goal becomes a plan you can read, and the plan a finished result."""
    from graph.commands import shared

    shared.settings_file = config


@app.command()
def run(
    goal: Goal = None,
    template: Template = None,
    plan: PlanFile = None,
    input: Inputs = None,
    file: Files = None,
    toolkit: Toolkits = None,
    thread: Thread = None,
    request_id: Request = None,
    approve: Approve = "ask",
    limit: LimitOptions = None,
    eager: Eager = False,
    review: Review = False,
    review_replans: ReviewReplans = False,
    role: Role = None,
    json: Json = False,
) -> None:
    """Pursue a goal until it is done, fails or waits."""
    from graph.commands.run import RunOptions, run_goal

    run_goal(
        RunOptions(
            goal,
            template,
            plan,
            input or [],
            file or [],
            thread,
            request_id,
            approve,
            limit or [],
            eager,
            "every" if review_replans else "first" if review else "none",
            role,
        ),
        toolkit or [],
        as_json=json,
    )


@app.command()
def plan(
    goal: Goal = None,
    template: Template = None,
    plan: PlanFile = None,
    input: Inputs = None,
    file: Files = None,
    toolkit: Toolkits = None,
    role: Role = None,
    json: Json = False,
) -> None:
    """Print the plan for a goal as YAML; nothing runs."""
    from graph.commands.planning import show_plan
    from graph.commands.run import RunOptions

    show_plan(RunOptions(goal, template, plan, input or [], file or [], role=role), toolkit or [], as_json=json)


@app.command()
def validate(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A plan, or a model's raw answer; - is stdin.")],
    toolkit: Toolkits = None,
    finish_reason: Annotated[
        str | None, typer.Option("--finish-reason", help="Why the model stopped, if the file is its raw answer.")
    ] = None,
    limit: LimitOptions = None,
    json: Json = False,
) -> None:
    """Judge a plan: every fault at once, with its place."""
    from graph.commands.planning import validate_file

    validate_file(file, finish_reason, toolkit or [], limit or [], as_json=json)


@app.command()
def resume(
    thread: ThreadId, toolkit: Toolkits = None, approve: Approve = "ask", limit: LimitOptions = None, json: Json = False
) -> None:
    """Go on with a run after a stop, a crash or a limit."""
    from graph.commands.run import resume_thread

    resume_thread(thread, toolkit or [], approve, limit or [], as_json=json)


@app.command()
def cancel(thread: ThreadId, json: Json = False) -> None:
    """End a run, wherever it is driven."""
    from graph.commands.cancel import cancel_thread

    cancel_thread(thread, as_json=json)


@app.command()
def fork(
    thread: ThreadId,
    from_step: Annotated[str, typer.Option("--from", metavar="STEP", help="This step and all that depends on it.")],
    new_thread: Thread = None,
    toolkit: Toolkits = None,
    request_id: Request = None,
    approve: Approve = "ask",
    limit: LimitOptions = None,
    json: Json = False,
) -> None:
    """Run again from a step, as a new run."""
    from graph.commands.fork import ForkWish, fork_thread

    fork_thread(ForkWish(thread, from_step, new_thread, request_id, approve, limit or []), toolkit or [], as_json=json)


add_people(app)
app.command()(token)


@app.command()
def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 20,
    json: Json = False,
) -> None:
    """List the latest runs."""
    from graph.commands.looking import list_runs

    list_runs(limit, as_json=json)


@app.command()
def show(
    thread: ThreadId,
    output: Annotated[
        str | None, typer.Option("--output", metavar="STEP", help="Print this step's stored result instead.")
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option("--raw", metavar="STEP", help="Print the raw error text of this step's failure instead."),
    ] = None,
    plans: Plans = False,
    json: Json = False,
) -> None:
    """Show where a thread's latest run stands."""
    from graph.commands.drafts import show_drafts
    from graph.commands.looking import show_thread

    show_drafts(thread, output, raw, as_json=json) if plans else show_thread(thread, output, raw, as_json=json)


for keeping in (archive, sweep, audit, doctor):
    app.command()(keeping)


def main() -> None:
    """Run the command line. Errors are sentences on stderr; a bug's traceback goes into a file that is named."""
    from graph.commands.failing import told_plainly
    from graph.commands.printing import prepare_streams

    prepare_streams()
    with told_plainly():
        code = typer.main.get_command(app).main(prog_name="surestep", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    raise SystemExit(code or 0)
