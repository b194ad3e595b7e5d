"""What `langgraph.json` opens beside the graph: the saver, and with it, from the server's start, the sweeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

from checkpoints import saver
from checkpoints.background import stop
from checkpoints.saver import PostgresSaver
from plans.errors import SurestepError

_LOG = logging.getLogger("surestep")


@asynccontextmanager
async def open_saver() -> AsyncIterator[PostgresSaver]:
    """The saver for a LangGraph server (`"checkpointer": {"path": "graph.serving.open_saver"}`).

    Threads that waited when the server was last stopped go on without anybody asking it for anything.
    """
    async with saver.open_saver() as opened:
        waking = asyncio.create_task(_wake(), name="the sweeper wakes")
        try:
            yield opened
        finally:
            await stop(waking)


async def _wake() -> None:
    agent = await asyncio.to_thread(import_module, "graph.agent")
    try:
        await agent.engine_of_this_loop()
    except SurestepError as error:  # whoever starts a run is told too
        _LOG.warning("nothing is swept: %s", error)
