"""`audit`: what was done, decided and changed; whether the record of it is whole; and seals to keep elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO, TypeVar

from graph.commands.looking import show_table
from graph.commands.printing import harmless, print_json, say, show
from graph.commands.reading import read_text
from graph.commands.shared import load_settings, waited
from plans.errors import StorageUnavailable, UsageError
from plans.values import printable, unclean
from plans.wording import counted

if TYPE_CHECKING:
    from graph.auditing import AuditEvent, AuditReport, AuditTrail

T = TypeVar("T")
Work = Callable[["AuditTrail"], Awaitable[T]]
WORDS = ("verify", "seal")


@dataclass(frozen=True)
class AuditWish:
    """What was asked for: a thread or one of two words, and the options."""

    what: str | None
    thread: str | None
    export: str | None
    anchor: str | None

    @property
    def word(self) -> str | None:
        """`verify` or `seal`, if it is that."""
        return self.what if self.what in WORDS else None

    @property
    def of_thread(self) -> str | None:
        """The thread, however it was named."""
        return self.thread if self.thread is not None or self.word else self.what

    def check(self) -> None:
        """Raises UsageError for options that do not go together."""
        if self.what is not None and self.word is None and self.thread is not None:
            raise UsageError(f"two threads are named, {self.what!r} and {self.thread!r}; name one")
        if self.anchor is not None and (self.word != "verify" or self.thread is not None):
            raise UsageError("--anchor belongs to `surestep audit verify`, which then looks at everything")
        if self.word == "seal" and (self.thread is not None or self.export is not None):
            raise UsageError("`surestep audit seal` covers everything, and prints the seal; it takes no other option")
        if self.word == "verify" and self.export is not None:
            raise UsageError("--export writes entries and verify looks at them; call them one after the other")


def audited(wish: AuditWish, *, as_json: bool) -> None:
    """Do what was asked for."""
    wish.check()
    if wish.word == "verify":
        _verify(wish, as_json=as_json)
    elif wish.word == "seal":
        _seal()
    elif wish.export is not None:
        _export(wish.of_thread, wish.export, as_json=as_json)
    else:
        _show(wish.of_thread, as_json=as_json)


def _show(thread: str | None, *, as_json: bool) -> None:
    events = on_trail(lambda trail: trail.of_no_run() if thread is None else trail.of_thread(thread))
    if as_json:
        print_json({"events": [event.model_dump(mode="json") for event in events]})
        return
    show_table(("when", "what", "step", "who", "hash", "told"), [_row(event) for event in events], "nothing yet")


def _row(event: AuditEvent) -> tuple[str, ...]:
    step = event.step or ""
    where = f"{step} #{event.attempt}" if event.attempt else step
    when = f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}"
    return when, event.kind, where, event.by or "", event.hash[:12], event.told


def _verify(wish: AuditWish, *, as_json: bool) -> NoReturn:
    """Exit 1 where something is not as it was written."""
    from graph.auditing import anchors_in

    anchors = anchors_in(read_text(wish.anchor, "the file of kept seals")) if wish.anchor is not None else []
    report = on_trail(lambda trail: trail.verified(wish.of_thread, anchors))
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _tell(report)
    raise SystemExit(0 if report.ok else 1)


def _tell(report: AuditReport) -> None:
    for finding in report.findings:
        show(harmless(f"{finding['code']}: {finding['message']}"))
    looked = (
        f"{counted(report.entries, 'event')} of {counted(report.chains, 'chain')} and {counted(report.rows, 'row')}"
    )
    verdict = (
        "all as written" if report.ok else f"{counted(len(report.findings), 'finding')}: the record was tampered with"
    )
    show(f"{verdict} ({looked}, {counted(report.seals, 'seal')})")
    for told in report.unseen:
        say(f"not seen here: {told}")


def _seal() -> None:
    """The seal is one line of JSON, whatever is asked: it is to be kept."""
    from graph.auditing import kept

    seal = on_trail(lambda trail: trail.sealed())
    if seal is None:
        raise UsageError("nothing was ever audited, so there is nothing to seal")
    print_json(kept(seal))
    if seal.mac is None:
        say("it is not signed, for SURESTEP_AUDIT_KEY is not set; keep the line where nobody can change it")


def _export(thread: str | None, to: str, *, as_json: bool) -> None:
    with _opened(to) as file:

        async def write(trail: AuditTrail) -> int:
            lines = 0
            async with aclosing(trail.exported(thread)) as exported:
                async for line in exported:
                    file.write(line + "\n")
                    lines += 1
            return lines

        lines = on_trail(write)
    if as_json and to != "-":
        print_json({"file": to, "lines": lines})
    elif to != "-":
        show(f"{counted(lines, 'line')} written to {harmless(to)}")


@contextmanager
def _opened(to: str) -> Iterator[TextIO]:
    """Where lines go. Raises StorageUnavailable."""
    if to == "-":
        yield sys.stdout
        return
    if any(unclean(to)):
        raise StorageUnavailable(f"{printable(to)} cannot be written: no file is called so")
    try:
        with Path(to).open("x", encoding="utf-8") as file:  # nothing that stands there is lost
            yield file
    except FileExistsError:
        raise UsageError(f"{printable(to)} exists already; name another file, or remove it first") from None
    except OSError as error:
        raise StorageUnavailable(f"{printable(to)} cannot be written: {error.strerror or error}") from None


def on_trail(work: Work[T]) -> T:
    """Do this with the audit of the database that the settings name."""
    settings = load_settings([])

    async def done() -> T:
        from checkpoints.database import open_database
        from graph.auditing import AuditTrail
        from graph.opening import audit_key_from

        size, prepare = min(2, settings.pool_size), settings.prepare_threshold
        async with open_database(
            settings.database_url, settings.folder, pool_size=size, prepare_threshold=prepare
        ) as database:
            return await work(AuditTrail(database, audit_key_from(settings), settings.tenant))

    return waited(done)
