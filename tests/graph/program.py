"""The `surestep` command under test: in this process where that is equal, as a child process where it is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-P", "-m", "surestep")
"""As the installed script runs: the current folder is not on Python's path."""
PATIENCE_S = 60.0

KIT = '''
import asyncio, os, time
from pathlib import Path
from plans.failure import ToolFailure
from tools.registry import Toolkit, ToolContext

kit = Toolkit("kit")
CALLS = Path(__file__).with_name("calls.txt")


def note(word):
    with CALLS.open("a") as file:
        file.write(f"{word}\\n")


@kit.tool(effect="read")
def double(number: int) -> dict[str, int]:
    """Twice a number."""
    note(f"double {number}")
    return {"number": number * 2}


@kit.tool(effect="read")
def loud(text: str) -> dict[str, str]:
    """Prints what it is given, itself and through a program that it starts."""
    print(f"printed {text}", flush=True)
    os.system(f"echo started {text}")
    return {"text": text}


@kit.tool(effect="read", retry={"max_attempts": 1})
def broken(why: str) -> dict[str, str]:
    """Never works."""
    raise ToolFailure("NOT_FOUND", why)


@kit.tool(effect="irreversible")
def send(to: str, text: str) -> dict[str, str]:
    """Send a message."""
    note(f"send {to}")
    return {"sent": to}


@kit.tool(effect="read", timeout_s=100)
async def wait(seconds: float, ctx: ToolContext) -> dict[str, float]:
    """Reads for so long, and tells how far it is."""
    note(f"wait {seconds}")
    for tenth in range(round(seconds * 10)):
        ctx.progress(tenth / (seconds * 10), f"part {tenth}")
        await asyncio.sleep(0.1)
    return {"waited": seconds}


@kit.tool(effect="read", timeout_s=100)
def block(seconds: float) -> dict[str, float]:
    """Holds a thread for so long."""
    note(f"block {seconds}")
    time.sleep(seconds)
    return {"blocked": seconds}


@kit.tool(effect="irreversible", timeout_s=100)
async def slow_send(to: str, seconds: float) -> dict[str, str]:
    """Sends a message at the end of so many seconds."""
    note(f"begin {to}")
    await asyncio.sleep(seconds)
    note(f"end {to}")
    return {"sent": to}
'''


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout; fails where there is anything else."""
        return json.loads(self.out)

    def refuses(self, *words: str, code: int = 2) -> str:
        """It ended with this code, one plain sentence with these words, no traceback, and nothing on stdout."""
        assert (self.code, self.out) == (code, ""), self
        assert self.err.startswith("surestep: ") or "\nsurestep: " in self.err, self.err
        assert not [word for word in ("Traceback", "pydantic", "Errno") if word in self.err], self.err
        for word in words:
            assert word in self.err, (word, self.err)
        return self.err


Run = Callable[..., Ended]


@dataclass(frozen=True)
class Project:
    """A folder of a user's, with a toolkit in it, and the environment that commands run in there."""

    folder: Path
    environment: Mapping[str, str]

    def calls(self) -> list[str]:
        """What the toolkit's tools have noted, in order."""
        noted = self.folder / "calls.txt"
        return noted.read_text().splitlines() if noted.exists() else []

    def write(self, name: str, content: str | bytes | Mapping[str, Any]) -> Path:
        """A file of this project; a mapping is written as JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
        return path

    def run(self, *arguments: str, stdin: bytes = b"", **more: Any) -> Ended:
        """A child process, to its end."""
        child = self.start(*arguments, stdin=subprocess.PIPE, **more)
        try:
            out, err = child.communicate(stdin, timeout=PATIENCE_S)
        finally:
            child.kill()
        return Ended(child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def start(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        **more: Any,
    ) -> subprocess.Popen[bytes]:
        """A child process that goes on."""
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **more}
        return subprocess.Popen([*command, *arguments], env={**self.environment, **(environment or {})}, **given)

    def wait_for(self, call: str, child: subprocess.Popen[bytes] | None = None) -> None:
        """Until a tool has noted this call."""
        until = time.monotonic() + PATIENCE_S
        while call not in self.calls():
            assert time.monotonic() < until, f"{call} never came; {self.calls()}"
            assert child is None or child.poll() is None, child.communicate()
            time.sleep(0.02)


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without what would set Surestep up."""
    ours = ("SURESTEP_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, **more}


def stopped_by(child: subprocess.Popen[bytes], number: signal.Signals) -> Ended:
    """Send the signal and wait for the end."""
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE_S)
    return Ended(child.returncode, out.decode(), err.decode())
