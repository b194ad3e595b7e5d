"""A real MCP server for tests: `python server.py FOLDER [stdio | PORT]`; it notes its pid and each call in FOLDER."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.utilities.types import Image
from mcp.types import ToolAnnotations

FOLDER = Path(sys.argv[1])
PORT = sys.argv[2] if len(sys.argv) > 2 else "stdio"
server = FastMCP("shop", host="127.0.0.1", port=0 if PORT == "stdio" else int(PORT), log_level="ERROR")


def note(word: str) -> None:
    """A line in the file of calls, there for good when this returns."""
    with (FOLDER / "calls.txt").open("a") as file:
        file.write(f"{word}\n")


def die_once(word: str) -> None:
    """Kill this process, the first time that it is asked to at this place."""
    marker = FOLDER / f"killed-{word}"
    if (FOLDER / f"kill-{word}").exists() and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def price(item: str) -> dict[str, int]:
    """Price of an item."""
    note(f"price {item}")
    die_once("price")
    return {"price": len(item)}


@server.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True))
async def send(to: str, context: Context[Any, Any, Any]) -> dict[str, str]:
    """Send a letter."""
    meta = context.request_context.meta
    key = (meta.model_extra or {}).get("surestep/idempotency-key") if meta else None
    note(f"send {to} {key}")
    die_once("send")
    return {"sent": to}


@server.tool()
async def slow(seconds: float, context: Context[Any, Any, Any]) -> str:
    """Take so long, and tell how far it is."""
    note("slow begins")
    for tenth in range(round(seconds * 10)):
        await context.report_progress(tenth, seconds * 10, f"part {tenth}")
        await asyncio.sleep(0.1)
    return "done"


@server.tool(structured_output=False)
def text(value: str) -> str:
    """Give a text back."""
    return value


@server.tool(structured_output=False)
def picture() -> Image:
    """A picture of one byte."""
    return Image(data=b"P", format="png")


if __name__ == "__main__":
    (FOLDER / "pids.txt").open("a").write(f"{os.getpid()}\n")
    server.run("stdio" if PORT == "stdio" else "streamable-http")
