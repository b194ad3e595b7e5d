"""How a command ends badly: one sentence for what a person can mend, and a file for what only we can."""

from __future__ import annotations

import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

from typer.exceptions import Abort, TyperException

from graph.commands.printing import print_json, say
from plans.errors import PlanRejected, SurestepError

USAGE = 2
STOPPED = 5


class Stopped(Exception):
    """The work was asked to stop and has put things in order."""


@contextmanager
def told_plainly() -> Iterator[None]:
    """An error of ours becomes `surestep: …` on stderr and its exit code; with --json also an object on stdout."""
    sys.excepthook = _bug
    _interrupt_on_termination()
    try:
        yield
    except SurestepError as error:
        faults = [fault.model_dump() for fault in error.faults] if isinstance(error, PlanRejected) else None
        _end(type(error).__name__, str(error), error.exit_code, faults)
    except TyperException as error:
        _end("UsageError", _usage(error), USAGE)
    except (KeyboardInterrupt, Stopped, Abort):
        _end("Stopped", "stopped", STOPPED)


def _interrupt_on_termination() -> None:
    """Outside of async work SIGTERM and a closed terminal are a Ctrl-C, so that a command ends with its own words."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def as_json_asked() -> bool:
    """Whether this command line asks for JSON, however wrong the rest of it may be."""
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _end(kind: str, message: str, code: int, faults: list[dict[str, Any]] | None = None) -> NoReturn:
    say(f"surestep: {message}")
    if as_json_asked():
        error: dict[str, Any] = {"type": kind, "message": message}
        print_json({"error": error | ({"faults": faults} if faults is not None else {})})
    raise SystemExit(code) from None


def _usage(error: TyperException) -> str:
    """The parser's own sentence, and where the right form stands."""
    said = error.format_message().replace("Value error, ", "").strip()
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help itself
        return f"a command is missing\n\n{said}"
    return f"{said.rstrip('.')}; see `{context.command_path if context else 'surestep'} --help`"


def _bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="surestep-", suffix=".txt", delete=False) as file:
        traceback.print_exception(kind, error, trace, file=file)
    message = f"a fault of Surestep's own ({kind.__name__}); what was finished is kept. Details are in {file.name}"
    say(f"surestep: {message}")
    if as_json_asked():
        print_json({"error": {"type": "Bug", "message": message}})
