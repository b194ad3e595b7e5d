"""The commands by which people are asked and answer: options and words. What they do stands in `graph/commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph.cli_options import Approve, Json, StepId, ThreadId, Toolkits


def add_people(app: typer.Typer) -> None:
    """Add the commands, in the order in which `--help` lists them."""
    for command in (approvals, approve, reject, edit):
        app.command()(command)


def approvals(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="Only this thread.")] = None,
    toolkit: Toolkits = None,
    json: Json = False,
) -> None:
    """List what waits for a person."""
    from graph.commands.people import list_approvals

    list_approvals(thread, toolkit or [], as_json=json)


def approve(
    thread: ThreadId,
    step: StepId,
    happened: Annotated[
        str | None,
        typer.Option(
            "--happened", metavar="RESULT", help="Of a step that may have happened: it has, with this result."
        ),
    ] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="TEXT", help="Of a question or a ticket: what to do instead.")
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Of a question about the plan (@plan): this one.")] = None,
    toolkit: Toolkits = None,
    approve: Approve = "ask",
    json: Json = False,
) -> None:
    """Allow a step as it was shown, or answer a question, and go on with the run."""
    from graph.commands.people import allowed, decide

    decision = allowed(happened, answer, plan)
    given = {"--happened": happened, "--answer": answer, "--plan": plan}
    option = next((name for name, said in given.items() if said is not None), None)
    decide(thread, step, decision, toolkit or [], approve, option=option, as_json=json)


def reject(
    thread: ThreadId,
    step: StepId,
    message: Annotated[str, typer.Option("--message", help="Why; stored with the decision.")] = "",
    toolkit: Toolkits = None,
    approve: Approve = "ask",
    json: Json = False,
) -> None:
    """Forbid a step in this run, and go on with the run."""
    from graph.commands.people import decide
    from plans.decisions import Reject

    decide(thread, step, Reject(message=message), toolkit or [], approve, as_json=json)


def edit(
    thread: ThreadId,
    step: StepId,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Of @plan: run this plan instead (- is stdin).")
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="Of a step that waits: run it with these arguments.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=VALUE", help="The same with only this argument changed; repeatable."),
    ] = None,
    toolkit: Toolkits = None,
    approve: Approve = "ask",
    json: Json = False,
) -> None:
    """Allow a step with other arguments, or run another plan than was shown, and go on with the run."""
    from graph.commands.editing import edit as edit_and_go_on
    from graph.commands.editing import wanted

    edit_and_go_on(thread, step, wanted(step, plan, args, arg or []), toolkit or [], approve, as_json=json)
