"""How a command ends badly: one sentence for what a person can mend, and a file for what only we can."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from plans.errors import SurestepError

INTERRUPTED = 5


@contextmanager
def told_plainly() -> Iterator[None]:
    """An error of ours becomes `surestep: …` on stderr and its exit code; with --json also an object on stdout."""
    sys.excepthook = _bug
    try:
        yield
    except SurestepError as error:
        _tell(str(error))
        if "--json" in sys.argv[1:]:
            import json

            sys.stdout.write(json.dumps({"error": {"type": type(error).__name__, "message": str(error)}}) + "\n")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        _tell("stopped")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read our output has gone: nothing is wrong
        sys.stderr.close()
        raise SystemExit(0) from None


def _tell(message: str) -> None:
    sys.stderr.write(f"surestep: {message}\n")


def _bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="surestep-", suffix=".txt", delete=False) as file:
        traceback.print_exception(kind, error, trace, file=file)
    _tell(f"a fault of Surestep's own ({kind.__name__}); what was finished is kept. Details for a report: {file.name}")
