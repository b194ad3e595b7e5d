"""What a tool is handed for one attempt: who calls, how long it has, its files and its connections."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nodes.events import Event
from nodes.origins import degraded_inputs
from plans.plan import Step
from tools.context import Progress, ToolContext
from tools.files import FileScope
from tools.redaction import redacted
from tools.tool import Tool

if TYPE_CHECKING:
    from checkpoints.connections import GuardedTransaction
    from nodes.session import Session

STEP_SECONDS = 25.0
"""A whole step's time, transport retries included, unless its tool or the plan gives it more."""


def context(
    session: Session,
    unit: str,
    step: Step,
    tool: Tool,
    key: str,
    attempt: int,
    transaction: GuardedTransaction | None = None,
    *,
    end_by: float = math.inf,
) -> ToolContext:
    """The context of one attempt; a transactional tool's connection is the transaction its outcome commits with.
    `end_by` is an instant of the engine's monotonic clock that the deadline never passes."""
    engine, head = session.engine, session.head
    return ToolContext(
        run_id=head.run_id,
        step_id=unit,
        attempt=attempt,
        idempotency_key=key,
        deadline=min(engine.clock.monotonic() + seconds_for(session, step, tool), end_by),
        files=FileScope(
            {name: Path(file.path) for name, file in head.files.items()},
            Path(head.output_folder),
            [Path(folder) for folder in head.forked.folders] if head.forked else (),
        ),
        connection=transaction or engine.connections.read_only(),
        external=engine.connections.external,
        progress=_on_loop(_telling(session, unit, tool.name, attempt)),
        notes=tuple(f"{name} was {said}" for name, said in degraded_inputs(session.fold, step, unit).items()),
    )


def seconds_for(session: Session, step: Step, tool: Tool) -> float:
    """How long the attempt may take: what the plan or the tool gives, and never more than the run has left."""
    seconds = step.timeout_s or max(STEP_SECONDS, tool.spec.timeout_s)
    limit = session.head.limits.max_wall_s
    return seconds if limit is None else min(seconds, max(0.0, limit - session.elapsed_s()))


def _telling(session: Session, unit: str, tool: str, attempt: int) -> Progress:
    def progress(fraction: float | None, message: str) -> None:
        session.emit(
            Event(kind="progress", step_id=unit, tool=tool, fraction=fraction, message=message, attempt=attempt)
        )

    return progress


def _on_loop(progress: Callable[[float | None, str], None]) -> Progress:
    """Progress may be told from a worker thread; the stream is the event loop's."""
    loop = asyncio.get_running_loop()

    def tell(fraction: float | None, message: str) -> None:
        try:
            loop.call_soon_threadsafe(progress, fraction, redacted(message))
        except RuntimeError:  # the loop has closed: nobody is listening any more
            return

    return tell
