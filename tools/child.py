"""The program of a child process: takes calls from its parent, one after the other, and says how each of them ended.

It is no program to run by hand: `tools/children.py` starts it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from tools.delivery import Ended
from tools.errand import Errand
from tools.normalise import Told, catching, told_of
from tools.output import BadOutput

Answer = tuple[str, Any]
"""("begun", None), ("progress", (fraction, message)), ("returned", pickled) or ("failed", Told)."""


def main() -> None:
    """Serve until the parent hangs up. The function's own children do not get the line to it."""
    number = int(sys.argv[2])
    os.set_inheritable(number, False)
    line = Connection(number)
    while True:
        try:
            errand = pickle.loads(line.recv_bytes())  # noqa: S301 (from our own parent)
        except (EOFError, OSError):
            return
        errand.around.enter()
        _Served(line).serve(errand)


class _Served:
    """One call. What its threads say after its end is heard by nobody, and so is whatever a fork of it says: a fork
    that comes back from the function ends here, and takes no further call."""

    def __init__(self, line: Connection) -> None:
        self._own = os.getpid()
        self._line = line
        self._lock = threading.Lock()
        self._over = False

    def serve(self, errand: Errand) -> None:
        """Make the call and tell its end."""
        body, begun = b"", False
        try:
            with catching() as caught:
                call = errand.call(self._progress)
                self._say("begun", None)
                begun = True
                body = _packed(_awaited(call()))
        finally:
            with catching():  # a tool may have closed them
                sys.stdout.flush()
                sys.stderr.flush()
            if os.getpid() != self._own:
                os._exit(0)
        if caught.error is None:
            self._end("returned", body)
        else:
            told = told_of(caught.error, time.time())
            self._end("failed", told if begun else told._replace(meaning=told.meaning._replace(certain=True)))

    def _progress(self, fraction: float | None, message: str) -> None:
        self._say("progress", (fraction, message))

    def _say(self, kind: str, said: Any) -> None:
        if os.getpid() != self._own:
            return
        with self._lock:
            if not self._over:
                self._line.send_bytes(pickle.dumps((kind, said)))

    def _end(self, kind: str, said: bytes | Told) -> None:
        self._say(kind, said)
        with self._lock:
            self._over = True


def _awaited(returned: Any) -> Any:
    async def wait() -> Any:
        return await returned

    return asyncio.run(wait()) if inspect.isawaitable(returned) else returned


def _packed(returned: Any) -> bytes:
    try:
        return pickle.dumps(returned)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        kind = type(returned).__name__
        raise BadOutput(
            "OUTPUT_INVALID", f"the tool returned a {kind} that cannot leave its process: {error}"
        ) from None


def unpacked(body: bytes) -> Ended:
    """In the parent: what was returned, or why it cannot be read here."""
    value = None
    with catching() as caught:
        value = pickle.loads(body)  # noqa: S301 (from our own child)
    if caught.error is None:
        return value, None
    said = f"the tool returned what only its own process can read: {type(caught.error).__name__}"
    return None, BadOutput("OUTPUT_INVALID", said)
