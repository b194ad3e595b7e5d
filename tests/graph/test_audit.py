"""The audit over the life of a run: archived, erased, and begun before there was an audit, it is whole."""

from __future__ import annotations

import gzip
import json

import pytest

from checkpoints.audit import Audit
from checkpoints.audit_verify import verify
from checkpoints.database import open_database
from checkpoints.migrate import migrate
from graph.auditing import AuditTrail
from graph.gateway import Agent
from tests.golden.test_golden import DATABASES, restore
from tests.graph.conftest import OpenAgent
from tests.graph.keeping import PLAN, kit


@pytest.fixture
async def agent(agent_on: OpenAgent) -> Agent:
    opened: Agent = await agent_on([kit])
    return opened


async def test_an_archived_and_an_erased_run_leave_a_record_that_is_whole(agent: Agent) -> None:
    """Archive and erasure are entries themselves. After the erasure the salt is gone, without which nobody can find
    out by trying what was hashed."""
    result = await agent.run(plan=PLAN, thread_id="t")
    database = agent.engine.database
    await agent.archive(older_than=0)
    archived = await AuditTrail(database).verified("t")
    assert archived.ok
    assert any("archived run" in told for told in archived.unseen)
    kinds = [event.kind for event in await AuditTrail(database).of_thread("t")]
    assert set(kinds[-3:]) == {"tombstone.added", "tombstone.changed", "run.deleted"}
    [before] = await database.fetch("SELECT salt FROM surestep.audit_chains WHERE chain = %s", (result.run_id,))
    await agent.erase("t")
    erased = await AuditTrail(database).verified()
    assert erased.ok
    assert any("erased run" in told for told in erased.unseen)
    [after] = await database.fetch("SELECT salt FROM surestep.audit_chains WHERE chain = %s", (result.run_id,))
    assert (after["salt"], len(before["salt"])) == (None, 32)
    entries = await Audit(database).entries([result.run_id])
    assert len(entries) > len(kinds)


async def test_what_an_older_version_has_left_is_audited_as_it_is(empty_database_url: str) -> None:
    """The rows of 0.1.0 get their entries when the database is migrated: none is left out, and all of them verify."""
    golden = json.loads(gzip.decompress(DATABASES[0].read_bytes()))
    await restore(empty_database_url, golden)
    assert any(name.endswith("_audit") for name in await migrate(empty_database_url))
    async with open_database(empty_database_url, DATABASES[0].parent) as database:
        verified = await verify(database)
    assert verified.findings == []
    assert verified.rows >= sum(len(golden["tables"][f"surestep.{name}"]) for name in ("runs", "journal", "approvals"))
