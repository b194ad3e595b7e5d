"""What PostgreSQL holds for the engine, in memory: tables, sessions, and one answer per named statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from checkpoints.queries import QUERIES
from tests.simulation.timeline import Timeline

Answer = list[dict[str, Any]]
Parameters = Mapping[str, Any] | Sequence[Any] | None
Statement = Callable[["Server", Any], Answer]

STATEMENTS: dict[str, Statement] = {}
"""What each named statement of `checkpoints/queries.sql` does here."""

NAMES: Mapping[str, str] = {sql: name for name, sql in QUERIES.items()}


def statement(act: Statement) -> Statement:
    """Register the function under its own name, which is the statement's."""
    STATEMENTS[act.__name__] = act
    return act


@dataclass(slots=True)
class LeaseRow:
    """A row of `surestep.leases`."""

    fence: int = 0
    owner: str | None = None
    backend_pid: int | None = None
    backend_start: datetime | None = None
    expires_at: datetime | None = None
    cancel_requested: bool = False


@dataclass(eq=False)
class Server:
    """The tables. A statement is atomic: it runs in one instant, and either all of it is there or none.

    `sessions` are the connections of living processes by number, with what to call when a cancel is asked for; `world`
    holds rows of tools' own tables; `on_row` hears of every journal row as it is accepted, `on_asked` of questions.
    """

    timeline: Timeline
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    journal: dict[str, dict[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    sessions: dict[int, Callable[[str], None]] = field(default_factory=dict)
    world: list[dict[str, Any]] = field(default_factory=list)
    on_row: list[Callable[[dict[str, Any]], None]] = field(default_factory=list)
    on_asked: list[Callable[[dict[str, Any]], None]] = field(default_factory=list)
    opened: int = 0

    def answer(self, sql: str, params: Parameters) -> Answer:
        """The rows that a statement gives now. LookupError for one that nobody has described here."""
        _describe()
        name = NAMES.get(sql, sql)
        if name not in STATEMENTS:
            raise LookupError(f"the simulation does not know the statement {name}; describe it in tests/simulation")
        return deepcopy(STATEMENTS[name](self, params))

    def connect(self, on_cancel: Callable[[str], None]) -> dict[str, Any]:
        """A session of a process that begins: how others see it."""
        self.opened += 1
        self.sessions[self.opened] = on_cancel
        return {"backend_pid": self.opened, "backend_start": self.timeline.moment()}

    def cut(self, session: Mapping[str, Any]) -> None:
        """The session's process is gone."""
        self.sessions.pop(session.get("backend_pid", 0), None)

    def rows_of(self, run_id: str) -> Answer:
        """The journal of one run in its order."""
        return [row for _, row in sorted(self.journal.get(run_id, {}).items())]

    def add_row(self, row: dict[str, Any]) -> str:
        """Store a journal row, or say that it is there already (`accepted`), or that another is (`clash`)."""
        rows, identity = self.journal.setdefault(row["run_id"], {}), (row["fence"], row["n"])
        known = rows.get(identity)
        if known is not None:
            same = all(known[name] == row[name] for name in ("kind", "step_id", "attempt", "body"))
            return "accepted" if same else "clash"
        rows[identity] = {**row, "at": self.timeline.moment()}
        for hear in self.on_row:
            hear(rows[identity])
        return "accepted"

    def owns(self, run_id: str, fence: int) -> bool:
        """Whether this fence is the run's present owner's."""
        lease = self.leases.get(run_id)
        return lease is not None and lease.fence == fence and lease.owner is not None

    def after(self, seconds: float) -> datetime:
        """The moment this many seconds from now."""
        return self.timeline.moment() + timedelta(seconds=seconds)


def _describe() -> None:
    """Import what fills the table of statements."""
    from tests.simulation import journal_statements, run_statements  # noqa: F401  # for what importing them does


def past(moment: datetime | None, server: Server) -> bool:
    """Whether this moment, if there is one, has come."""
    return moment is not None and moment <= server.timeline.moment()
