"""`archive`: moves runs that are over into files, or erases a thread everywhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from graph.commands.looking import show_table
from graph.commands.printing import console, harmless, print_json, say, show
from graph.commands.shared import opened, waited
from graph.given import age_s
from plans.errors import UsageError
from plans.wording import counted

if TYPE_CHECKING:
    from checkpoints.archive import ArchiveReport
    from checkpoints.erasure import ErasureReport


def archive_runs(older_than: str, to: str | None, thread: str | None, *, dry_run: bool, as_json: bool) -> NoReturn:
    """Archive, and say what became of each run; exit 1 where one could not be archived whole."""
    seconds = age_s(older_than)
    opening = opened([], calls=False)

    async def work() -> ArchiveReport:
        async with opening as agent:
            return await agent.archive(older_than=seconds, to=to, thread_id=thread, dry_run=dry_run)

    report = waited(work)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _show(report, older_than)
    raise SystemExit(1 if any(not left.busy for left in report.left) else 0)


def erase_thread(thread: str, *, yes: bool, as_json: bool) -> None:
    """Erase a thread, if that is really meant."""
    if not yes:
        _make_sure(thread)
    opening = opened([], calls=False)

    async def work() -> ErasureReport:
        async with opening as agent:
            return await agent.erase(thread)

    report = waited(work)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    show(f"erased: {counted(len(report.runs), 'run')} of thread {thread}, {report.archived} of them in the archive")
    if report.files_left:
        say(f"{counted(report.files_left, 'file')} of results may be in use by a run right now; `surestep archive` "
            "deletes them later")  # fmt: skip


def _make_sure(thread: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"erasing thread {thread!r} cannot be undone; say that you mean it with --yes")
    console(stderr=True).print(harmless(f"Everything of thread {thread} will be erased, for good. Type its id again:"))
    if sys.stdin.readline().strip() != thread:
        raise UsageError("that is another id; nothing was erased")


def _show(report: ArchiveReport, older_than: str) -> None:
    rows = [(run.thread_id, run.status, f"{run.size:,}", run.location) for run in report.archived]
    names = ("thread", "status", "bytes", "would go to" if report.dry_run else "archived to")
    show_table(names, rows, f"no run has ended more than {older_than} ago on a thread that is over")
    for left in report.left:
        say(f"left: run {left.run_id} of thread {left.thread_id}: {left.why}")
    done = [
        f"checkpoints of {counted(report.threads_trimmed, 'thread')} trimmed" if report.threads_trimmed else "",
        f"{counted(report.files_deleted, 'file')} deleted that nothing refers to" if report.files_deleted else "",
    ]
    if any(done):
        say("; ".join(filter(None, done)))
