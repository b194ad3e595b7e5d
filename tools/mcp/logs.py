"""What the libraries that speak MCP log: nothing that a person must read, and never a secret of a server."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from tools.redaction import without

_LOGGERS = ("httpx", "mcp", "mcp.client.stdio", "mcp.client.streamable_http")
"""Who logs URLs and messages of servers. A filter sees only what is logged by the logger that it was given to."""


def keep_quiet(secrets: Iterable[str]) -> None:
    """A server's faults are told by us, once: without logging set up, nothing reaches the terminal. With it, these
    texts are left out."""
    mcp = logging.getLogger("mcp")
    if not any(isinstance(each, logging.NullHandler) for each in mcp.handlers):
        mcp.addHandler(logging.NullHandler())
    if scrubbing := _Scrubbing(secrets):
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            if not any(kept == scrubbing for kept in logger.filters):
                logger.addFilter(scrubbing)


class _Scrubbing(logging.Filter):
    """Replaces texts in what is logged."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scrubbing) and other._secrets == self._secrets

    def __hash__(self) -> int:
        return hash(self._secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, without them."""
        text = without(record.getMessage(), self._secrets)
        if text != record.getMessage():
            record.msg, record.args = text, ()
        return True
