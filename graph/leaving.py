"""The end of a drive, whoever drives: a callback of the graph lets go of what the drive has left open (rule 14)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

from plans.errors import SurestepError

if TYPE_CHECKING:
    from nodes.engine import Engine


class EndOfDrive(AsyncCallbackHandler):
    """Sees the root of every run of the graph end: by its result, an interrupt, an error or a cancel.

    The caller gets to know of the end only afterwards, so that nothing of the run happens once the caller knows.
    `engine` gives the engine of this event loop if one is open; it opens none. A drive of our gateway lets go itself.
    """

    only_roots = True
    """No step is shown as a run of its own for this one's sake."""

    def __init__(self, engine: Callable[[], Engine | None]) -> None:
        self._engine = engine
        self._threads: dict[UUID, str] = {}

    async def on_chain_start(
        self,
        *_: Any,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **__: Any,
    ) -> None:
        """Remember which thread a root is about."""
        thread_id = (metadata or {}).get("thread_id")
        if parent_run_id is None and thread_id is not None:
            self._threads[run_id] = str(thread_id)

    async def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """The root has ended with a result, or with a question."""
        await self._end(run_id)

    async def on_chain_error(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """The root has ended with an error or a cancel; what is told is that."""
        await self._end(run_id)

    async def _end(self, root: UUID) -> None:
        thread_id, engine = self._threads.pop(root, None), self._engine()
        if thread_id is None or engine is None:
            return
        for run_id, session in list(engine.sessions.items()):
            if session.head.thread_id == thread_id and not engine.attendance.attended(run_id):
                with suppress(SurestepError):
                    await engine.close_session(run_id)
