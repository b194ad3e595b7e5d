"""The audit as it is written: with what it tells of or not at all, in one order whoever writes, and never changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql

from checkpoints.approvals import Approvals
from checkpoints.audit import Audit
from checkpoints.audit_sealing import sealing
from checkpoints.audit_verify import verify
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.tool_settings import PostgresSettings
from plans.decisions import ApprovalRequest, Approve
from plans.principals import Principal
from plans.values import JSON
from tests.checkpoints.scenes import a_row, owned_run

KEY = b"a key of at least thirty-two bytes, kept elsewhere"
REFUSED = (
    "UPDATE surestep.audit SET kind = 'x'", "DELETE FROM surestep.audit", "TRUNCATE surestep.audit",
    "UPDATE surestep.audit_seals SET mac = NULL", "DELETE FROM surestep.audit_seals", "TRUNCATE surestep.audit_seals",
    "UPDATE surestep.audit_sealed SET length = 0", "DELETE FROM surestep.audit_sealed",
    "DELETE FROM surestep.audit_chains", "TRUNCATE surestep.audit_chains",
)  # fmt: skip


def a_request(run_id: str, n: int, *, expired: bool = False) -> ApprovalRequest:
    """A question of a run."""
    now = datetime.now(UTC)
    return ApprovalRequest(
        approval_id=f"{run_id} {n}", run_id=run_id, thread_id=f"thread of {run_id}", step_id=f"s{n}", tool="refund",
        args={}, args_sha256="abc", risk="high", reason="money", created_at=now,
        expires_at=now - timedelta(seconds=1) if expired else None,
    )  # fmt: skip


def _set_to(run_id: str) -> Callable[[dict[str, JSON]], dict[str, JSON]]:
    return lambda _before: {"of": run_id}


async def test_what_was_audited_is_neither_changed_nor_deleted(database: Database) -> None:
    """By nobody who leaves the triggers in place: no update, no deletion, no truncation."""
    await owned_run(database)
    await Audit(database).seal(KEY)
    for statement in REFUSED:
        with pytest.raises(psycopg.errors.RestrictViolation):
            await database.execute(statement)
    assert (await verify(database, key=KEY)).findings == []


async def test_an_entry_is_there_exactly_if_what_it_tells_of_is(database: Database) -> None:
    """A transaction that is rolled back, as that of a process which is killed, leaves neither, and no gap."""
    await owned_run(database)
    before = len(await Audit(database).entries(["r1"]))
    statement, params = Journal(database).statement_for(a_row(1))
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        await connection.execute(statement, params)
        await connection.rollback()
    assert len(await Audit(database).entries(["r1"])) == before
    async with Journal(database) as journal:
        await journal.append(a_row(1))
        await journal.append(a_row(1))  # a row whose answer was lost is sent again
    entries = await Audit(database).entries(["r1"])
    assert [entry.seq for entry in entries] == list(range(1, before + 2))
    assert (await verify(database)).findings == []


async def test_all_who_write_at_once_make_one_order(database: Database) -> None:
    """Batches over many runs, decisions, expiries, settings, seals, on several connections: nobody waits in a ring,
    and every chain is whole."""
    runs = [f"r{number}" for number in range(6)]
    for run_id in runs:
        await owned_run(database, run_id)
        await Approvals(database).record([a_request(run_id, 1), a_request(run_id, 2, expired=True)])

    async def write(which: int) -> None:
        async with Journal(database) as journal:
            for n in range(10):
                waits = [await journal.submit(a_row(which * 100 + n, run_id)) for run_id in runs[:: 1 - which % 2 * 2]]
                await asyncio.gather(*waits)

    async def decide(which: int) -> None:
        for run_id in runs[:: 1 - which % 2 * 2]:
            await Approvals(database).expire()
            if which:
                await Approvals(database).decide(f"{run_id} 1", Approve(), Principal(name="ann"))
            await PostgresSettings(database).change(f"tool {which}", _set_to(run_id), "bob")
            await Audit(database).seal(KEY)

    await asyncio.gather(*(write(which) for which in range(3)), *(decide(which) for which in range(2)))
    verified = await verify(database, key=KEY)
    assert verified.findings == []
    assert verified.entries >= 6 * (1 + 30 + 4 + 1) + 12


async def test_a_process_seals_with_its_key_and_tells_the_log(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """While it works, and once more at its end; without a key nothing is sealed."""
    await owned_run(database)
    async with sealing(database, None):
        pass
    assert (await verify(database)).seals == 0
    with caplog.at_level(logging.INFO, "surestep"):
        async with sealing(database, KEY, every_s=0.02):
            async with asyncio.timeout(10):
                while not caplog.records:  # noqa: ASYNC110 (a record of a log is awaited by looking)
                    await asyncio.sleep(0.01)
            await owned_run(database, "r2")
    verified = await verify(database, key=KEY)
    assert (verified.findings, verified.unsealed, verified.seals) == ([], 0, 2)
    last = await Audit(database).seal(KEY)
    assert last is not None
    assert (last.seal, last.hash.hex() in caplog.text) == (2, True)


async def test_who_may_write_runs_need_not_be_able_to_write_the_audit(database: Database) -> None:
    """A role without any right on the audit's tables writes a run, which is audited; it can neither read nor add nor
    change an entry by itself."""
    role = sql.Identifier(f"worker_{database.url.rpartition('/')[2].partition('?')[0]}")
    grants = (
        "CREATE ROLE {}", "GRANT USAGE ON SCHEMA surestep TO {}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA surestep TO {}",
        "REVOKE ALL ON surestep.audit, surestep.audit_chains, surestep.audit_seals, surestep.audit_sealed FROM {}",
    )  # fmt: skip
    await owned_run(database)
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        for grant in grants:
            await connection.execute(sql.SQL(grant).format(role))
        await connection.execute(sql.SQL("SET ROLE {}").format(role))
        statement, params = Journal(database).statement_for(a_row(1))
        await connection.execute(statement, params)
        await connection.commit()
        for forbidden in (
            "SELECT FROM surestep.audit", "DELETE FROM surestep.audit", "SELECT surestep.audit_hold('r1')",
            "UPDATE surestep.audit_chains SET length = 0",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(forbidden)
            await connection.rollback()
        await connection.execute("RESET ROLE")
        await connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        await connection.execute(sql.SQL("DROP ROLE {}").format(role))
        await connection.commit()
    assert [entry.kind for entry in await Audit(database).entries(["r1"])] == ["run.running", "journal.outcome"]
    assert (await verify(database)).findings == []
