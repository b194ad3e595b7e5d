"""A goal, a file and no model: `python examples/files.py examples/data/orders.csv`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graph.agent import open_agent


async def main(file: Path) -> None:
    """Run the goal on the file, say what happens while it does, and where the report is."""
    async with open_agent() as agent:
        result = await agent.run(
            "Find anomalous orders in this file and summarise them",
            inputs={"orders": file},
            on_event=lambda event: print(event.kind, event.step_id or "", event.status or ""),
        )
        print(result.answer)
        print(result.report_ref)


asyncio.run(main(Path(sys.argv[1])))
