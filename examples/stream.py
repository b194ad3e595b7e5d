"""The compiled LangGraph graph itself: every node's update and every decision: `python examples/stream.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from graph.agent import open_agent


async def main() -> None:
    """Stream one run as any LangGraph client would, and print the edges it takes."""
    async with open_agent() as agent:
        config: Any = {"configurable": {"thread_id": "stream-1"}}
        async for update in agent.graph.astream({"goal": "which orders are late?"}, config, stream_mode="updates"):
            for node, changed in update.items():
                print(node, "->", (changed or {}).get("edge", ""))
        state = await agent.graph.aget_state(config)
        print(state.values["answer"])


asyncio.run(main())
