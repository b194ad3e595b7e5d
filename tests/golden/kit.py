"""The tools of the golden runs. A call of `send` notes itself in a file; told to, it kills its own process."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from plans.failure import ToolFailure
from tools.registry import Toolkit

kit = Toolkit("golden")
LEDGER = "GOLDEN_LEDGER"
DIE = "GOLDEN_DIE"


@kit.tool(effect="read")
async def look(what: str) -> dict[str, Any]:
    """Look something up."""
    return {"found": f"{what}!", "items": [1, 2, 3]}


@kit.tool(effect="read", fallbacks=["look"])
async def gone(what: str) -> dict[str, Any]:
    """Is never there: another tool answers."""
    raise ToolFailure("NOT_FOUND", f"{what} is not here")


@kit.tool(effect="read")
async def double(number: int) -> dict[str, int]:
    """Twice the number."""
    return {"number": 2 * number}


@kit.tool(effect="read")
async def slow() -> dict[str, bool]:
    """Takes a while."""
    await asyncio.sleep(0.3)
    return {"awake": True}


@kit.tool(effect="irreversible")
def send(text: str) -> dict[str, str]:
    """Send a letter."""
    with Path(os.environ[LEDGER]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{text}\n")
    if os.environ.get(DIE):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"sent": text}


def _step(step_id: str, tool: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": tool, "args": {}, "depends_on": list(after), "reason": "golden", **more}


PLANS: dict[str, dict[str, Any]] = {
    "waiting": {
        "goal": "a letter that somebody has to allow",
        "steps": [
            _step("s1", "look", args={"what": "ann"}),
            _step("s2", "send", args={"text": "to ${s1.found}"}, require_approval=True),
            _step("s3", "look", "s2", args={"what": "bob"}),
        ],
        "answer": "${s2.sent} ${s3.found}",
    },
    "doubt": {
        "goal": "a letter of which nobody knows whether it has left",
        "steps": [
            _step("s1", "look", args={"what": "eve"}),
            _step("s2", "send", args={"text": "about ${s1.found}"}),
            _step("s3", "look", "s2", args={"what": "dan"}),
        ],
        "answer": "${s3.found}",
    },
    "limited": {
        "goal": "more than there is time for",
        "steps": [_step("s1", "slow"), _step("s2", "slow", "s1"), _step("s3", "look", "s2", args={"what": "end"})],
        "answer": "${s3.found}",
    },
    "done": {
        "goal": "something of everything",
        "steps": [
            _step("s1", "gone", args={"what": "cat"}),
            _step("s2", "double", args={"number": "${item}"}, for_each="${s1.items}"),
            _step("s3", "look", "s2", args={"what": "fog"}, when="s2[0].number > `100`"),
            _step("s4", "send", args={"text": "numbers ${s2[*].number}"}),
        ],
        "answer": "${s4.sent}",
    },
}
"""One plan per thread; the thread has the plan's name."""
