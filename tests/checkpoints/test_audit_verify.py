"""The audit verified: what is as it was written passes, and whatever was changed, taken away or put in is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row

from checkpoints.approvals import Approvals
from checkpoints.audit import Audit
from checkpoints.audit_chain import key_id, link, sign
from checkpoints.audit_verify import Anchor, verify, verify_on
from checkpoints.audited import TABLES
from checkpoints.database import Database
from checkpoints.journal import Journal
from checkpoints.tool_settings import PostgresSettings
from plans.decisions import ApprovalRequest, Approve
from plans.principals import Principal
from tests.checkpoints.scenes import a_row, owned_run

KEY = b"a key of at least thirty-two bytes, kept elsewhere"
REQUEST = ApprovalRequest(
    approval_id="a1",
    run_id="r1",
    thread_id="thread of r1",
    step_id="s2",
    tool="refund",
    args={"amount": 20},
    args_sha256="abc",
    risk="high",
    reason="money",
    created_at=datetime(2026, 11, 30, tzinfo=UTC),
)
SWAPPED = """WITH two AS (DELETE FROM surestep.audit WHERE chain = 'r1' AND seq IN (2, 3) RETURNING *)
    INSERT INTO surestep.audit SELECT chain, 15 - seq, at, kind, subject, content, details, hash FROM two;
    UPDATE surestep.audit SET seq = seq - 10 WHERE chain = 'r1' AND seq > 10"""
PUT_IN = """INSERT INTO surestep.audit SELECT chain, 10, at, kind, subject, content, details, hash FROM surestep.audit
    WHERE chain = 'r1' AND seq = 9"""
SLIPPED_IN = """INSERT INTO surestep.journal SELECT run_id, fence, 77, kind, step_id, attempt, body, at
    FROM surestep.journal WHERE run_id = 'r1' AND n = 3"""
UNHEARD_OF = """INSERT INTO surestep.runs (run_id, thread_id, request_id, goal, input, input_sha256)
    VALUES ('r9', 't', 'q', 'g', '{}', '')"""

TAMPERED: tuple[tuple[LiteralString, str], ...] = (
    ("UPDATE surestep.audit SET kind = 'journal.skip' WHERE chain = 'r1' AND seq = 3", "edited"),
    ("UPDATE surestep.audit SET at = at + '1 us'::interval WHERE chain = 'r1' AND seq = 3", "edited"),
    ("UPDATE surestep.audit SET hash = sha256('x') WHERE chain = 'r1' AND seq = 3", "edited"),
    ("UPDATE surestep.audit SET details = '{\"via\": \"none\"}' WHERE chain = 'logins'", "edited"),
    (SWAPPED, "edited"),
    ("DELETE FROM surestep.audit WHERE chain = 'r1' AND seq = 1", "deleted"),
    ("DELETE FROM surestep.audit WHERE chain = 'r1' AND seq = 4", "deleted"),
    ("DELETE FROM surestep.audit WHERE chain = 'r1' AND seq > 5", "cut_off"),
    ("DELETE FROM surestep.audit WHERE chain = 'r1'", "cut_off"),
    (PUT_IN, "inserted"),
    ("DELETE FROM surestep.audit_chains WHERE chain = 'r1'", "chain_missing"),
    ("UPDATE surestep.audit_chains SET salt = NULL WHERE chain = 'r1'", "salt_missing"),
    ("UPDATE surestep.journal SET body = '{\"n\": 99}' WHERE run_id = 'r1' AND n = 3", "source_changed"),
    ("UPDATE surestep.journal SET at = at - '1 day'::interval WHERE run_id = 'r1' AND n = 3", "source_changed"),
    ("DELETE FROM surestep.journal WHERE run_id = 'r1' AND n = 3", "source_missing"),
    (SLIPPED_IN, "not_audited"),
    ("UPDATE surestep.approvals SET status = 'rejected'", "source_changed"),
    ("UPDATE surestep.decisions SET decided_by = 'eve'", "source_changed"),
    ("DELETE FROM surestep.decisions", "source_missing"),
    ("UPDATE surestep.runs SET goal = 'another' WHERE run_id = 'r2'", "source_changed"),
    ("DELETE FROM surestep.runs WHERE run_id = 'r2'", "source_missing"),
    (UNHEARD_OF, "chain_missing"),
    ("UPDATE surestep.instructions SET message = 'stop'", "source_changed"),
    ("DELETE FROM surestep.instructions", "source_missing"),
    ("UPDATE surestep.tool_changes SET changed_by = 'ann'", "source_changed"),
    ("DELETE FROM surestep.tool_changes", "source_missing"),
    ("UPDATE surestep.audit_seals SET at = at + '1 us'::interval", "seal_broken"),
    ("UPDATE surestep.audit_seals SET mac = NULL, key_id = NULL", "signature_wrong"),
    ("UPDATE surestep.audit_sealed SET length = 1 WHERE chain = 'r1'", "seal_broken"),
    ("DELETE FROM surestep.audit_sealed WHERE chain = 'r1'", "seal_broken"),
)


@pytest.fixture
async def lived(database: Database) -> Database:
    """A database in which things have happened: two runs, a decision, a change of a setting, a login, a seal."""
    for run_id in ("r1", "r2"):
        await owned_run(database, run_id)
        async with Journal(database) as journal:
            for n in range(1, 5):
                await journal.append(a_row(n, run_id, body={"text": 'ä\n"x" 💡', "n": n, "f": 1.5}))
    await Approvals(database).record([REQUEST])
    await Approvals(database).decide("a1", Approve(), Principal(name="ann"))
    await database.execute(
        "INSERT INTO surestep.instructions (run_id, instruction_id, message, said_by)"
        " VALUES ('r1', 'i1', 'go · on', '{\"name\": \"ann\"}')"
    )
    await PostgresSettings(database).change("refund", lambda _: {"enabled": False}, "bob")
    await Audit(database).note("logins", "login.accepted", "ann", {"via": "token", "tenant": "north"})
    await Audit(database).seal(KEY)
    return database


async def tamper(database: Database, *statements: str) -> None:
    """What somebody does who may do everything in the database, past all triggers."""
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute("SET session_replication_role = replica")
        for statement in statements:
            await connection.execute(statement)


async def found(database: Database, **more: object) -> list[str]:
    """The codes of what verification finds."""
    return sorted({finding.code for finding in (await verify(database, **more)).findings})  # type: ignore[arg-type]


async def test_what_nobody_has_changed_passes(lived: Database) -> None:
    """Rows of every table, with texts of all kinds, are found again as they were audited; and everything is sealed."""
    verified = await verify(lived, key=KEY)
    assert verified.findings == []
    assert (verified.chains, verified.seals, verified.unsealed, verified.signed) == (4, 1, 0, True)
    assert verified.rows == 8 + 2 + 1 + 1 + 1 + 1
    entries = await Audit(lived).entries(["r1"])
    assert [entry.kind for entry in entries] == [
        "run.running",
        *["journal.outcome"] * 4,
        "approval.pending",
        "approval.approved",
        "decision.added",
        "instruction.added",
    ]


async def test_what_was_tampered_with_is_found(lived: Database) -> None:
    """Edits, deletions, insertions, reordering and cuts, in the audit, in its seals and in what it tells of."""
    missed = {}
    async with await psycopg.AsyncConnection.connect(lived.url, row_factory=dict_row) as connection:
        for statement, code in TAMPERED:
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute("SET LOCAL timezone = 'UTC'")
            await connection.execute(statement)
            verified = await verify_on(connection, key=KEY)
            if code not in (codes := {finding.code for finding in verified.findings}):
                missed[statement] = codes
            await connection.rollback()
        assert (await verify_on(connection, key=KEY)).findings == []
    assert missed == {}


async def test_a_run_that_was_taken_away_with_all_its_traces_is_missed(lived: Database) -> None:
    """Its entries, its chain, its journal and its row are gone, and the seal still knows of it."""
    await tamper(
        lived,
        "DELETE FROM surestep.audit WHERE chain = 'r2'",
        "DELETE FROM surestep.audit_chains WHERE chain = 'r2'",
        "DELETE FROM surestep.journal WHERE run_id = 'r2'",
        "DELETE FROM surestep.runs WHERE run_id = 'r2'",
    )
    assert {"chain_missing", "cut_off"} <= set(await found(lived))


async def rewritten(database: Database) -> None:
    """Somebody changes a decision, and knows how the audit is made: every hash behind it is made anew."""
    entries = await Audit(database).entries(["r1"])
    statements, before = [], bytes(32)
    for entry in entries:
        changed = replace(entry, kind="run.paused") if entry.seq == 1 else entry
        before = link(before, changed)
        statements.append(
            f"UPDATE surestep.audit SET kind = '{changed.kind}', hash = '\\x{before.hex()}'"  # noqa: S608 (ours)
            f" WHERE chain = 'r1' AND seq = {entry.seq}"
        )
    head = f"UPDATE surestep.audit_chains SET head = '\\x{before.hex()}' WHERE chain = 'r1'"  # noqa: S608 (ours)
    await tamper(database, *statements, head)


async def test_a_chain_that_was_made_anew_is_not_what_was_sealed(lived: Database) -> None:
    """All its links hold, and it is found by the seal."""
    await rewritten(lived)
    assert await found(lived) == ["rewritten"]


async def test_a_seal_that_was_made_anew_is_not_signed(lived: Database) -> None:
    """Who rewrites a chain and seals it again lacks the key: without one nothing is found, with it the signature is."""
    await rewritten(lived)
    await tamper(
        lived, "DELETE FROM surestep.audit_seals", "DELETE FROM surestep.audit_sealed",
        "UPDATE surestep.audit_chains SET sealed = false",
    )  # fmt: skip
    await Audit(lived).seal(b"a key that somebody has made up himself, quite long")
    assert await found(lived) == []
    assert await found(lived, key=KEY) == ["signature_wrong"]
    await tamper(lived, f"UPDATE surestep.audit_seals SET key_id = '{key_id(KEY)}'")  # noqa: S608 (ours)
    assert await found(lived, key=KEY) == ["signature_wrong"]


async def test_a_cut_back_to_an_older_seal_is_seen_by_who_has_kept_the_newer(lived: Database) -> None:
    """Whatever the key: what the database still has is genuine, and only the kept seal tells that there was more."""
    async with Journal(lived) as journal:
        await journal.append(a_row(5, "r1"))
    kept = await Audit(lived).seal(KEY)
    assert kept is not None
    assert await found(lived, key=KEY, anchors=[Anchor(kept.seal, kept.hash)]) == []
    await tamper(
        lived, "DELETE FROM surestep.audit_seals WHERE seal = 2", "DELETE FROM surestep.audit_sealed WHERE seal = 2",
        "DELETE FROM surestep.journal WHERE run_id = 'r1' AND n = 5",
        "DELETE FROM surestep.audit WHERE chain = 'r1' AND seq = 10",
        "UPDATE surestep.audit_chains SET length = 9, head = (SELECT hash FROM surestep.audit WHERE chain = 'r1'"
        " AND seq = 9) WHERE chain = 'r1'",
    )  # fmt: skip
    assert await found(lived, key=KEY) == []
    assert await found(lived, key=KEY, anchors=[Anchor(kept.seal, kept.hash)]) == ["anchor_missing"]
    other = Anchor(1, bytes(32))
    assert await found(lived, key=KEY, anchors=[other]) == ["rewritten"]


async def test_a_key_may_be_replaced(lived: Database) -> None:
    """The last seal speaks for those before it, whoever has signed them; the old key alone is told from a forgery."""
    new = b"the key of the year after, which is as long as the other"
    async with Journal(lived) as journal:
        await journal.append(a_row(5, "r1"))
    sealed = await Audit(lived).seal(new)
    assert sealed is not None
    assert (sealed.seal, sealed.mac) == (2, sign(new, sealed.hash))
    assert await found(lived, key=new) == []
    assert await found(lived, key=KEY) == ["signature_wrong"]


async def test_one_thread_can_be_verified_alone(lived: Database) -> None:
    """What was done to other runs is not looked at."""
    await tamper(lived, "DELETE FROM surestep.audit WHERE chain = 'r2' AND seq = 2")
    assert (await verify(lived, chains=["r1"])).findings == []
    assert {each.chain for each in (await verify(lived, chains=["r2"])).findings} == {"r2"}


async def test_every_audited_table_has_a_query_and_every_query_its_trigger(database: Database) -> None:
    """What is declared for who verifies is what the triggers do: none is forgotten on either side."""
    rows = await database.fetch(
        "SELECT DISTINCT c.relname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE t.tgname LIKE 'audited_%'"
    )
    assert {row["name"] for row in rows} == {table.table for table in TABLES}


async def test_what_is_audited_is_told_by_the_microsecond(lived: Database) -> None:
    """Moments are exact: a difference of one microsecond is found above, and none comes from reading them."""
    moments = [entry.at for entry in await Audit(lived).entries(["r1"])]
    assert moments == sorted(moments)
    assert moments[0].tzinfo is not None
    assert moments[0] <= datetime.now(UTC)
