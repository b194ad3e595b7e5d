"""Tools of all four effects that note every call in a ledger file, and kill their own process where they are told to.

`DIE_AT` is "before:TOOL" (nothing has happened yet), "after:TOOL" (it has happened, and nobody knows of it) or
"stop:TOOL" (it hangs, so that somebody else can stop the process).
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tools.registry import ToolContext, Toolkit

kit = Toolkit("recovery")


def note(tool: str, key: str) -> None:
    """One line in the ledger: this has happened in the world."""
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{tool} {key}\n")


async def maybe_die(moment: str) -> None:
    """SIGKILL, if this is the moment."""
    if os.environ.get("DIE_AT") == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    if moment.startswith("before:") and os.environ.get("DIE_AT") == moment.replace("before", "stop"):
        Path(os.environ["LEDGER"]).with_suffix(".reached").touch()
        await asyncio.sleep(60)


@kit.tool(effect="read")
async def look(what: str) -> dict[str, str]:
    """Look something up."""
    await maybe_die("before:look")
    note("look", what)
    return {"found": f"{what}!"}


@kit.tool(effect="idempotent")
async def charge(account: str, ctx: ToolContext) -> dict[str, str]:
    """Charge an account; the other side honours the key."""
    await maybe_die("before:charge")
    note("charge", ctx.idempotency_key)
    await maybe_die("after:charge")
    return {"charged": account}


@kit.tool(effect="transactional")
async def book(account: str, ctx: ToolContext) -> dict[str, str]:
    """Book it in Surestep's own database."""
    await maybe_die("before:book")
    await ctx.connection.execute("INSERT INTO bookings (account) VALUES (%s)", (account,))
    await maybe_die("after:book")
    return {"booked": account}


@kit.tool(effect="irreversible")
async def send(text: str) -> dict[str, str]:
    """Send a letter, which nobody can take back."""
    await maybe_die("before:send")
    note("send", text)
    await maybe_die("after:send")
    return {"sent": text}


def probe_parcel(key: str) -> dict[str, str] | None:
    """Whether a parcel with this key has left."""
    ledger = Path(os.environ["LEDGER"]).read_text("utf-8")
    return {"shipped": "yes"} if f"ship {key}\n" in ledger else None


@kit.tool(effect="irreversible", probe=probe_parcel)
async def ship(text: str, ctx: ToolContext) -> dict[str, str]:
    """Ship a parcel; whether it has left can be asked."""
    await maybe_die("before:ship")
    note("ship", ctx.idempotency_key)
    await maybe_die("after:ship")
    return {"shipped": "yes"}


PLAN = {
    "goal": "all four effects in a row",
    "steps": [
        {"id": "s1", "tool": "look", "args": {"what": "ann"}},
        {"id": "s2", "tool": "charge", "args": {"account": "${s1.found}"}},
        {"id": "s3", "tool": "book", "args": {"account": "${s2.charged}"}},
        {"id": "s4", "tool": "ship", "args": {"text": "to ${s3.booked}"}},
        {"id": "s5", "tool": "send", "args": {"text": "to ${s3.booked}"}, "depends_on": ["s4"]},
        {"id": "s6", "tool": "look", "args": {"what": "bob"}, "depends_on": ["s5"]},
    ],
}
