"""Where output goes: one result on stdout, everything said beside it on stderr; and what either of them can hold."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import IO, TYPE_CHECKING, Any, TextIO

from typing_extensions import override

from plans.errors import StorageUnavailable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

NARROWEST = 30
"""Columns that every listing gets, whatever the terminal says of itself."""
UNWRAPPED = 10_000
"""Columns of an output that is no terminal: a line stays one line for whatever program reads it."""

# What moves a terminal's cursor, rings its bell, turns the direction of its text, or cannot be seen at all: such text
# comes from files and models, and would otherwise write whatever it likes into a person's screen, or look like another.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)

_IN_ASCII = str.maketrans({"✓": "+", "▸": ">", "✗": "x", "·": "-", "…": "..."})


def prepare_streams() -> None:
    """Make the three standard streams usable: one that was closed becomes empty, one that cannot write a character
    (LANG=C, Latin-1) writes its escape instead of failing."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_nothing(number, name)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a TextIO in the stubs


def _open_nothing(number: int, name: str) -> None:
    try:
        os.fstat(number)
    except OSError:
        # The lowest free number is given, so the descriptor itself is taken too: nothing else can end up behind it.
        os.open(os.devnull, os.O_RDWR)
    setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def written(text: str, stream: IO[str]) -> str:
    """The text with our own marks in ASCII where the stream cannot write them."""
    return text if _is_unicode(stream) else text.translate(_IN_ASCII)


def _is_unicode(stream: IO[str]) -> bool:
    return (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "").startswith("utf")


def harmless(text: str) -> str:
    """The text with what would act on a terminal shown as escapes; line ends and tabs stay."""
    return _ACTIVE.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def say(message: str) -> None:
    """A line for the person, on stderr. Nobody listening is no reason to stop."""
    with suppress(OSError, ValueError):
        sys.stderr.write(written(f"{harmless(message)}\n", sys.stderr))
        sys.stderr.flush()


def write_out(text: str) -> None:
    """Write to stdout at once. A reader who has gone is nothing wrong; a full disk is StorageUnavailable."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go_of_stdout()
    except OSError as error:
        _let_go_of_stdout()
        raise StorageUnavailable(f"the result cannot be written to standard output: {error.strerror}") from None


def write_bytes(body: bytes) -> None:
    """Write a stored result to stdout, byte for byte, with a line end after it."""
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(body + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _let_go_of_stdout()
    except OSError as error:
        _let_go_of_stdout()
        raise StorageUnavailable(f"the result cannot be written to standard output: {error.strerror}") from None


def _let_go_of_stdout() -> None:
    """What is still buffered goes nowhere: Python would try it once more at its end, and fail there."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def print_json(value: Any) -> None:
    """The one object that goes to stdout; in pure ASCII where the output cannot hold every character."""
    write_out(json.dumps(value, ensure_ascii=not _is_unicode(sys.stdout)) + "\n")


class _LikeStdout(io.StringIO):
    """Keeps what is printed for stdout, and says of itself what stdout would."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # StringIO declares an attribute
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    @override
    def isatty(self) -> bool:
        return sys.stdout.isatty()


def console(*, stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A rich console; where its output is no terminal nothing is wrapped."""
    from rich.console import Console

    found = Console(file=file, stderr=stderr, highlight=False, markup=False, emoji=False)
    unwrapped = not found.is_terminal and "COLUMNS" not in os.environ
    found.width = UNWRAPPED if unwrapped else max(NARROWEST, found.width)
    return found


def show(*shown: RenderableType) -> None:
    """Print for a person, on stdout, as rich lays it out; texts are shown as they are, without markup."""
    printed = _LikeStdout()
    out = console(file=printed)
    for each in shown:
        out.print(harmless(each) if isinstance(each, str) else each)
    lines = "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())
    write_out(written(lines, sys.stdout))


@contextmanager
def stdout_for_the_result() -> Iterator[None]:
    """What tools print, and the programs that they start, goes to stderr: stdout is for the one result."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(_stderr()):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _stderr() -> TextIO:
    return sys.stderr
