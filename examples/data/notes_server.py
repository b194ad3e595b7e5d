"""An MCP server, which could as well be anybody's: it is spoken to over stdin and stdout."""

from __future__ import annotations

from mcp.server.fastmcp import FastMCP

server = FastMCP("notes", log_level="ERROR")
notes: list[str] = []


@server.tool()
def write_note(text: str) -> dict[str, int]:
    """Keep a note; gives its number."""
    notes.append(text)
    return {"number": len(notes)}


@server.tool()
def read_note(number: int) -> dict[str, str]:
    """Read the note of a number."""
    return {"text": notes[number - 1]}


server.run("stdio")
