"""Functions that run in a child process, each in its own way; a child imports this module."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.registry import Toolkit

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@dataclass
class Total:
    """A result with a type."""

    amount: Decimal
    of: list[str]


class Sums:
    """A class with functions of its own."""

    @staticmethod
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number


def add(amount: Decimal, names: list[str], /, times: int = 1) -> Total:
    """Add it up."""
    return Total(amount * times, names)


def pid() -> int:
    """Which process this is."""
    return os.getpid()


def measure(text: str) -> int:
    """How long a text is."""
    return len(text)


async def patient(seconds: float) -> int:
    """Sleeps on a loop of the child's own."""
    await asyncio.sleep(seconds)
    return os.getpid()


def look(ctx: ToolContext) -> dict[str, Any]:
    """What of the context has arrived."""
    ctx.progress(0.5, "half")
    (ctx.files.writable("note.txt")).write_text("written")
    return {"key": ctx.idempotency_key, "step": ctx.step_id, "left": ctx.seconds_left, "attempt": ctx.attempt}


async def query(ctx: ToolContext) -> Any:
    """Wants a connection."""
    return await ctx.connection.fetch("SELECT 1")


def printing() -> str:
    """Prints, in Python and below it."""
    print("PRINTED", flush=True)  # noqa: T201
    os.write(1, b"WRITTEN")
    return "done"


def stubborn(noted: str) -> None:
    """Ignores being told to end, and has a child of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    own = subprocess.Popen(SLEEPER)
    Path(noted).write_text(f"{os.getpid()} {own.pid}")
    time.sleep(60)


def holding(noted: str) -> None:
    """Holds the interpreter: no other thread of its process gets a turn."""
    Path(noted).write_text(f"{os.getpid()}")
    ctypes.PyDLL(None).sleep(60)


def leaving(noted: str) -> str:
    """Returns, and leaves a child of its own behind, which holds the line open."""
    if (child := os.fork()) == 0:
        time.sleep(60)
        os._exit(0)
    Path(noted).write_text(f"{os.getpid()} {child}")
    return "left"


def forked_and_gone() -> None:
    """Dies while a fork of its own still holds everything open."""
    if os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    os._exit(4)


def forked(how: str, ctx: ToolContext) -> str:
    """Forks, and the fork does not end by itself: it goes on as if it were the call."""
    if os.fork() == 0:
        ctx.progress(None, "from the fork")
        if how == "exits":
            sys.exit(3)
        return "from the fork"
    time.sleep(0.2)
    return "from the child"


def around(folder: str) -> tuple[str, str | None, bool]:
    """What is around it; then changes all of that, for whoever comes next."""
    found = (str(Path.cwd()), os.environ.get("SEEN"), "/nowhere" in sys.path)
    os.chdir(folder)
    os.environ["SEEN"] = "changed by a call"
    sys.path.append("/nowhere")
    print("AROUND")  # noqa: T201 (not flushed)
    return found


def talking_late(ctx: ToolContext) -> str:
    """Returns, and goes on telling."""

    def tell() -> None:
        time.sleep(0.05)
        ctx.progress(None, "too late")

    threading.Thread(target=tell).start()
    return "returned"


def crash(how: str) -> None:
    """Ends its process without a word."""
    if how == "exit":
        os._exit(3)
    if how == "deaf":  # it cannot say how it has ended
        os.closerange(3, 256)
        return
    os.kill(os.getpid(), {"segfault": signal.SIGSEGV, "memory": signal.SIGKILL, "odd": signal.SIGRTMIN + 1}[how])
    time.sleep(5)


def fail(how: str) -> None:
    """Raises."""
    import httpx

    request = httpx.Request("GET", "http://example.com")
    raise {
        "known": ToolFailure("RATE_LIMITED", "later", delay_s=7),
        "status": httpx.HTTPStatusError(
            "secret", request=request, response=httpx.Response(429, request=request, headers={"Retry-After": "9"})
        ),
        "cut": ConnectionResetError("secret"),
        "group": ExceptionGroup("one", [FileNotFoundError("secret")]),
        "exit": SystemExit(3),
        "odd": OddError(lambda: None),
    }[how]


class OddError(Exception):
    """Cannot be pickled."""

    def __init__(self, why: Any) -> None:
        super().__init__(why)


def unpicklable() -> Any:
    """Returns what cannot leave its process."""
    return lambda: None


def wrong() -> int:
    """Returns something else than it declares."""
    return "seven"  # type: ignore[return-value]


kit = Toolkit("apart")
kit.add(pid, effect="read", isolation="process")
