"""One process's doors to the database in memory: the engine's own stores, with nothing replaced but the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, cast

from checkpoints.artifacts import ArtifactStore
from checkpoints.bodies import Store
from checkpoints.connections import Connections, GuardedTransaction, LazyConnection
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.leases import LEASE_S, Leases
from checkpoints.presence import Presence
from checkpoints.sender import Sender
from plans.errors import ArtifactMissing
from plans.failure import ToolFailure
from tests.simulation.server import Answer, Parameters, Server

if TYPE_CHECKING:
    from checkpoints.pools import Pool


class Gone(BaseException):
    """This process is dead: whatever of it still runs changes nothing any more."""


@dataclass(eq=False)
class Wire:
    """The way from one process to the server: how long it takes, how often an answer is lost, and whether it is cut.

    `latency_s` bounds one way; 0 takes no time at all. `session` is how
    the server knows the process.
    """

    server: Server
    chance: Random
    latency_s: float = 0.0
    lost: float = 0.0
    cut: bool = False
    session: dict[str, Any] = field(default_factory=dict)

    async def send(self, sql: str, params: Parameters) -> Answer:
        """One statement, there and back."""
        await self.travel()
        answer = self.server.answer(sql, params)
        await self.travel()
        return answer

    async def travel(self) -> None:
        """The time that one way takes. Gone, if the process is."""
        if self.latency_s:
            await asyncio.sleep(self.chance.uniform(0.0, self.latency_s))
        self.check()

    def check(self) -> None:
        """Refuse everything to a dead process."""
        if self.cut:
            raise Gone


class MemoryDatabase(Database):
    """The server as `Database` shows it."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(pool=cast("Pool", None), url="postgresql://simulated/postgres")
        object.__setattr__(self, "wire", wire)

    wire: Wire

    async def fetch(self, sql: str, params: Parameters = None) -> list[dict[str, Any]]:
        """The rows of one statement."""
        return await self.wire.send(sql, params)

    async def execute(self, sql: str, params: Parameters = None) -> int:
        """Run one statement; gives the number of rows it gave."""
        return len(await self.wire.send(sql, params))


class MemorySender(Sender):
    """Sends until it has an answer: now and then one is lost, and the same rows are sent again."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(MemoryDatabase(wire))
        self._wire = wire

    async def send(self, sql: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows that the statement gives, at its first or at a later arrival."""
        answer = await self._wire.send(sql, params)
        while self._wire.chance.random() < self._wire.lost:
            await asyncio.sleep(0.05)
            answer = await self._wire.send(sql, params)
        return answer


class MemoryJournal(Journal):
    """The journal itself: its batches, its back-pressure, its refusals. Only what sends is replaced."""

    def __init__(self, wire: Wire, bodies: Store | None = None) -> None:
        super().__init__(MemoryDatabase(wire), bodies)
        self._sender = MemorySender(wire)


class MemoryPresence(Presence):
    """A session of the process with the server in memory."""

    def __init__(self, wire: Wire, on_cancel: Callable[[str], None]) -> None:
        super().__init__("postgresql://simulated/postgres", on_cancel=on_cancel)
        self._wire = wire

    async def open(self) -> None:
        """Be seen."""
        loop = asyncio.get_running_loop()
        self._session = self._wire.server.connect(lambda run_id: void(loop.call_soon(self._on_cancel, run_id)))
        self._wire.session = self._session

    async def close(self) -> None:
        """Be gone."""
        if not self._wire.cut:
            self._wire.server.cut(self._session)

    async def session(self) -> dict[str, Any]:
        """What names the session."""
        return self._session


def void(_: object) -> None:
    """Nothing."""


class MemoryLeases(Leases):
    """The leases themselves, renewed in virtual time."""

    def __init__(self, wire: Wire, monotonic: Callable[[], float], length_s: float = LEASE_S) -> None:
        super().__init__(MemoryDatabase(wire), length_s=length_s, monotonic=monotonic)
        self._presence = MemoryPresence(wire, self._told_to_cancel)


class MemoryFiles:
    """The folder of large results."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def write(self, sha256: str, body: bytes) -> None:
        """Keep the body."""
        self._wire.check()
        self._wire.server.files[sha256] = body

    def read(self, sha256: str) -> bytes:
        """The body; ArtifactMissing when there is none."""
        self._wire.check()
        if sha256 not in self._wire.server.files:
            raise ArtifactMissing(f"there is no file {sha256}")
        return self._wire.server.files[sha256]

    def written_at(self, sha256: str) -> float | None:
        """The beginning of time, for every body there is."""
        return 0.0 if sha256 in self._wire.server.files else None

    def remove(self, sha256: str) -> None:
        """Drop the body."""
        self._wire.server.files.pop(sha256, None)


class MemoryArtifacts(ArtifactStore):
    """The store itself; only the folder is replaced."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(MemoryDatabase(wire), "simulated")
        self._files = MemoryFiles(wire)


class MemoryTransaction(GuardedTransaction):
    """A transaction of a tool: what it has written is there when the row of its outcome is, or not at all.

    A tool writes rows of the world: `execute("world", row)`.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(cast("Pool", None))
        self._wire = wire
        self._written: list[dict[str, Any]] = []
        self._ended = False

    async def execute(self, sql: str, params: Any = ()) -> int:
        """Write one row, to be seen when the transaction commits."""
        await self._wire.travel()
        self._written.append(dict(params))
        return 1

    async def fetch(self, sql: str, params: Any = ()) -> NoReturn:
        """The world's tools read nothing here."""
        raise LookupError(f"{sql} with {params} is not part of the simulation")

    async def commit_with(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """The tool's rows and ours in one instant. Now and then the connection is lost before or after it."""
        await self._wire.travel()
        lost = self._wire.chance.random() < self._wire.lost
        if lost and self._wire.chance.random() < 0.5:
            self._ended = True
            raise ToolFailure("UNKNOWN_OUTCOME", "the connection was lost during the statement")
        answer = [] if self._ended else self._wire.server.answer(sql, params)
        if answer:
            self._wire.server.world += self._written
        self._ended = True
        await self._wire.travel()
        if lost:
            raise ToolFailure("UNKNOWN_OUTCOME", "the connection was lost during the statement")
        return answer

    async def abort(self) -> None:
        """Undo what was not committed."""
        self._ended = True


@dataclass
class MemoryConnections(Connections):
    """What tools are handed."""

    wire: Wire

    def read_only(self) -> LazyConnection:
        """Nothing reads here; opened by nobody."""
        return LazyConnection(cast("Pool", None), "read_only")

    def transaction(self, *, idle_seconds: float | None = None) -> GuardedTransaction:
        """For a transactional tool."""
        return MemoryTransaction(self.wire)

    async def __aexit__(self, *_exc: object) -> None:
        """Nothing is open."""
