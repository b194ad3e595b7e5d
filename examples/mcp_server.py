"""Tools of an MCP server, with policy of your own: `python examples/mcp_server.py` (extra `mcp`)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graph.agent import open_agent
from tools.mcp import mcp_toolkit

NOTES = mcp_toolkit(
    "notes",
    command=[sys.executable, str(Path(__file__).parent / "data" / "notes_server.py")],
    tools={"read_note": {"effect": "read"}, "write_note": {"effect": "irreversible", "risk": "low"}},
)
PLAN = {
    "goal": "keep a note and read it again",
    "steps": [
        {"id": "kept", "tool": "notes_write_note", "args": {"text": "buy milk"}},
        {"id": "found", "tool": "notes_read_note", "args": {"number": "${kept.number}"}},
    ],
    "answer": "note ${kept.number} says: ${found.text}",
}


async def main() -> None:
    """Run the plan; the server is started for it, and gone afterwards."""
    async with open_agent(toolkits=[NOTES]) as agent:
        result = await agent.run(plan=PLAN)
        print(result.status, "-", result.answer)


asyncio.run(main())
