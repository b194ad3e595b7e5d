"""Logs without personal data and credentials: those of ours and of the libraries below, as each record is made.

Of other loggers of the process, which are somebody else's, only the known secrets are blanked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tools.privacy import BUILT_IN, Privacy
from tools.redaction import known_blanked

OURS = frozenset(
    {
        "surestep", "plans", "tools", "checkpoints", "nodes", "graph", "evals", "asyncio", "httpcore", "httpcore2",
        "httpx", "httpx2", "langchain", "langchain_core", "langchain_openai", "langgraph", "langgraph_api",
        "langgraph_runtime_inmem", "langsmith", "mcp", "openai", "psycopg", "urllib3",
    }
)  # fmt: skip
"""Loggers whose records may hold what a run is about, by the first part of their names."""

_FORMATTER = logging.Formatter()


class CleanRecords:
    """Makes log records as the factory before it does, and takes out of them what must not be logged."""

    def __init__(self, before: Callable[..., logging.LogRecord], privacy: Privacy) -> None:
        self._before = before
        self.privacy = privacy

    def __call__(self, *args: Any, **more: Any) -> logging.LogRecord:
        """A record whose message and traceback are clean."""
        record = self._before(*args, **more)
        # one that `logging.makeLogRecord` makes has no name yet
        clean = self._ours if (record.name or "").partition(".")[0] in OURS else known_blanked
        if isinstance(record.msg, dict):  # structlog's, with what it has to say as fields
            record.msg = clean({name: each for name, each in record.msg.items() if isinstance(each, str)}) | {
                name: each for name, each in record.msg.items() if not isinstance(each, str)
            }
            return record
        said = record.getMessage()
        shown = clean(said)
        if shown != said:
            record.msg, record.args = shown, None
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            record.exc_text = clean(_FORMATTER.formatException(record.exc_info))
        return record

    def _ours(self, said: Any) -> Any:
        return self.privacy.text(said) if isinstance(said, str) else self.privacy.value(said)


def keep_logs_clean(privacy: Privacy = BUILT_IN) -> None:
    """From here on; called again it only takes the other way to find personal data."""
    before = logging.getLogRecordFactory()
    if isinstance(before, CleanRecords):
        before.privacy = privacy
    else:
        logging.setLogRecordFactory(CleanRecords(before, privacy))
