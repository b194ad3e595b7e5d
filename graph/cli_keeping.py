"""The commands for whoever keeps Surestep running: what is over is put away, nobody is left waiting, all is there."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli_options import Age, Erase, Every, Json, Toolkits


def archive(
    older_than: Age = "7d",
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URL", help="A folder or fsspec URL; default: SURESTEP_ARCHIVE_URL."),
    ] = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Only this thread.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be archived; change nothing.")] = False,
    erase: Erase = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --erase: do not ask again.")] = False,
    json: Json = False,
) -> None:
    """Move runs that are over into files, or erase a thread everywhere."""
    from graph.commands.archive import archive_runs, erase_thread

    if erase is not None:
        erase_thread(erase, yes=yes, as_json=json)
    else:
        archive_runs(older_than, to, thread, dry_run=dry_run, as_json=json)


def sweep(every: Every = None, toolkit: Toolkits = None, json: Json = False) -> None:
    """Go on with what was answered, or not in time, and tell people what waits."""
    from graph.commands.sweep import sweep_all

    sweep_all(every, toolkit or [], as_json=json)


def audit(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[THREAD|verify|seal]", help="A thread; or verify, or seal; default: what is of no run."
        ),
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="With verify: only this thread. Else as THREAD.")
    ] = None,
    export: Annotated[
        str | None, typer.Option("--export", metavar="FILE|-", help="Write entries as JSON lines; without THREAD, all.")
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", metavar="FILE|-", help="With verify: seals that were kept elsewhere, one in a line."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what was done, decided and changed, and whether the record is whole."""
    from graph.commands.audit import AuditWish, audited

    audited(AuditWish(what, thread, export, anchor), as_json=json)


def doctor(toolkit: Toolkits = None, json: Json = False) -> None:
    """Check what a run needs, and say what to do about it."""
    from graph.commands.doctor import examine

    examine(toolkit or [], as_json=json)
