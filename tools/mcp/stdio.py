"""A server as a child of ours: spoken to by its standard streams, its last words on stderr kept, gone at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.stdio import StdioServerParameters, stdio_client

from tools.mcp.config import Server

KEPT_WORDS = 8_000
"""How many bytes of a child's stderr are kept, the last ones."""


class Words:
    """What the child writes to stderr, of which only the end is kept."""

    def __init__(self) -> None:
        self._kept = b""

    async def listen(self, stream: asyncio.StreamReader) -> None:
        """Take all of it, so that the child never waits for us."""
        while heard := await stream.read(65_536):
            self._kept = (self._kept + heard)[-KEPT_WORDS:]

    @property
    def last(self) -> str:
        """Its last words."""
        return self._kept.decode("utf-8", "replace").strip()


@asynccontextmanager
async def child(server: Server, words: Words) -> AsyncIterator[Any]:
    """The streams of a child that has been started; it has ended when the block has. It is given PATH, HOME, USER,
    LOGNAME, SHELL and TERM as they are here, and `env`, and is the leader of a process group of its own, so that a
    Ctrl-C at the terminal is ours alone. At the end its stdin is closed; after 2 s it is asked to terminate, after 2
    more it and what it started is killed. Raises OSError where the program cannot be started."""
    program, *arguments = server.command or ()
    parameters = StdioServerParameters(
        command=program, args=arguments, env=server.env, cwd=server.cwd, encoding_error_handler="replace"
    )
    heard, written = os.pipe()
    stream = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(heard, "rb", 0)
    )
    listening = asyncio.create_task(words.listen(stream))
    try:
        with os.fdopen(written, "w") as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                errors.close()  # the child has its own; ours would keep the pipe open when it is gone
                yield streams
    finally:
        pipe.close()
        listening.cancel()
