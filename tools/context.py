"""What a running tool is handed: who calls, how long it has, its files and its connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from tools.files import FileScope

Parameters = Sequence[Any] | Mapping[str, Any]
Progress = Callable[[float | None, str], None]


class Connection(Protocol):
    """SQL with psycopg's placeholders (%s or %(name)s). Opened when first used."""

    async def fetch(self, sql: str, params: Parameters = ()) -> list[dict[str, Any]]:
        """The rows, one dict per row."""
        ...

    async def execute(self, sql: str, params: Parameters = ()) -> int:
        """The number of rows changed."""
        ...


@dataclass(frozen=True)
class ToolContext:
    """Handed to a tool that has a parameter annotated with it, whatever the parameter's name.

    `idempotency_key` stays the same when the same effect is tried again: pass it on. `deadline` is an instant of
    time.monotonic(); what comes back later is dropped. `connection` is a read-only transaction, and for a
    transactional tool the one that commits together with the record of its result. `external(name)` is a connection
    to a system of record that is not Surestep's own, for idempotent and irreversible tools. `progress(fraction,
    message)` tells the person who watches; fraction is between 0 and 1, or None. `notes` are sentences about arguments
    that are not what was asked for: from a mock, an old result or another tool; whoever writes for people repeats them.
    """

    run_id: str
    step_id: str
    attempt: int
    idempotency_key: str
    deadline: float
    files: FileScope
    connection: Connection
    external: Callable[[str], Connection]
    progress: Progress
    notes: tuple[str, ...] = ()

    @property
    def seconds_left(self) -> float:
        """Time until the deadline; never negative."""
        return max(0.0, self.deadline - time.monotonic())

    @classmethod
    def bare(
        cls,
        folder: Path,
        *,
        inputs: Mapping[str, Path] | None = None,
        connection: Connection | None = None,
        idempotency_key: str = "key-1",
        seconds: float = 60.0,
    ) -> ToolContext:
        """A context for calling a tool in your own tests: outputs go into `folder`, and without a connection every
        use of one is a LookupError."""
        given = connection or NoConnection("this context has no connection")
        return cls(
            run_id="run-1",
            step_id="s1",
            attempt=1,
            idempotency_key=idempotency_key,
            deadline=time.monotonic() + seconds,
            files=FileScope(dict(inputs or {}), folder),
            connection=given,
            external=lambda _name: given,
            progress=lambda _fraction, _message: None,
        )


class NoConnection:
    """Stands where there is no connection; `why` is told to who uses it."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def fetch(self, sql: str, params: Parameters = ()) -> list[dict[str, Any]]:
        """LookupError."""
        self._refuse(sql, params)

    async def execute(self, sql: str, params: Parameters = ()) -> int:
        """LookupError."""
        self._refuse(sql, params)

    def _refuse(self, sql: str, params: Parameters) -> NoReturn:
        raise LookupError(f"{self._why}, so it cannot run {sql!r} with {len(params)} parameters")
