"""What somebody writes into the database by hand: it is not carried out, it is told in a sentence, a run is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from checkpoints.archive_files import read_file, rows_from
from checkpoints.database import Database
from checkpoints.places import name_of, place_at
from checkpoints.rows import Row
from checkpoints.sealing import SealedSecrets, SealingKey
from checkpoints.serializer import StateSerializer
from graph.gateway import Agent
from nodes.fold import fold_journal
from nodes.versions import readable_state
from plans.errors import ArtifactMissing, StorageUnavailable, SurestepError, Unreadable, VersionTooNew
from plans.placeholders import Kept
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.probes.blobs import BLOBS, ODD
from tests.probes.witness import watched

ASKS = plan(
    step("s1", "double", args={"number": 4}),
    step("s2", "send", "s1", args={"to": "a", "text": "b"}, require_approval=True),
)
BODIES: list[Any] = [
    [], "text", 7, True, None, {}, {"$artifact": "../../etc/passwd"}, {"$artifact": 7}, {"head": 7}, {"plan": []},
    {"output": {"output_ref": "sha256-0", "size": "x"}}, {"verdict": {"verdict": "grant"}}, {"journal_version": "x"},
    {"lc": 2, "type": "constructor", "id": ["subprocess", "getoutput"], "args": ["touch touched"]}, [[[[[[[[]]]]]]]],
]  # fmt: skip
"""JSON that stands in no row of ours."""
CHANGE = {
    "checkpoint_blobs": "UPDATE checkpoint_blobs SET type = %s, blob = %s WHERE type <> 'empty'",
    "checkpoint_writes": "UPDATE checkpoint_writes SET type = %s, blob = %s",
}


@pytest.mark.parametrize("name", BLOBS)
def test_no_value_is_called_imported_or_made(name: str, tmp_path: Path) -> None:
    """Whatever a stored value names, reading it starts no program, and says in a sentence why it is none of ours."""
    touched = tmp_path / "touched"
    with watched() as witness, pytest.raises((Unreadable, VersionTooNew), match="a checkpoint holds"):
        StateSerializer().loads_typed(BLOBS[name](f"touch {touched}"))
    assert witness.reached == []
    assert not touched.exists()


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_state_is_taken_for_none(name: str) -> None:
    """A value of another kind in the place of a run, a plan or a question is refused before a node sees it."""
    value = StateSerializer().loads_typed(ODD[name])
    for channel in ("run", "current_plan", "approvals", "usage", "schema_version", "messages"):
        if value is not None and (name, channel) != ("a number", "schema_version"):
            with pytest.raises(Unreadable, match=channel):
                readable_state({channel: value})


@pytest.fixture
async def paused(agent_on: OpenAgent) -> Agent:
    """A run that waits for its approval, with checkpoints in the database."""
    agent: Agent = await agent_on([Shop().kit])
    assert (await agent.run(plan=ASKS, thread_id="t1")).status == "paused"
    return agent


@pytest.mark.parametrize(("table", "blob"), [("checkpoint_blobs", "arguments"), ("checkpoint_writes", "pickle")])
async def test_a_thread_with_such_values_is_shown_and_not_gone_on_with(
    table: str, blob: str, paused: Agent, database_url: str, tmp_path: Path
) -> None:
    """The run is told from its journal; whoever goes on is told what is wrong, and nothing has happened."""
    touched = tmp_path / "touched"
    _set(database_url, CHANGE[table], *BLOBS[blob](f"touch {touched}"))
    assert (await paused.show("t1")).status == "paused"
    with pytest.raises((Unreadable, VersionTooNew), match="a checkpoint holds"):
        await paused.resume("t1", approve="all")
    assert not touched.exists()
    assert [each.status for each in (await paused.show("t1")).steps] == ["done", "pending"]


@pytest.mark.parametrize("table", ["checkpoint_blobs", "checkpoint_writes"])
async def test_a_thread_of_numbers_is_not_gone_on_with(table: str, paused: Agent, database_url: str) -> None:
    """The same where values can be read, and are not what stood there."""
    _set(database_url, CHANGE[table], *ODD["a number"])
    with pytest.raises(Unreadable, match="no Surestep has written"):
        await paused.resume("t1", approve="all")
    assert (await paused.show("t1")).status == "paused"


async def test_rows_of_the_journal_that_hold_anything_are_refused_in_a_sentence(paused: Agent) -> None:
    """In every row of a run every kind of body, and every kind of row: a picture, or an error that names the row."""
    run_id = (await paused.show("t1")).run_id
    rows = await paused.engine.journal.read(run_id)
    refused = 0
    for changed in _changed(rows):
        try:
            fold_journal(changed)
        except (Unreadable, VersionTooNew) as error:
            refused += "journal" in str(error)
    assert refused > len(rows) * 3


def _changed(rows: list[Row]) -> Iterator[list[Row]]:
    for place, row in enumerate(rows):
        others = [replace(row, body=body) for body in BODIES]
        others += [replace(row, body={**row.body, name: body}) for name in row.body for body in BODIES]
        others += [replace(row, kind="'; DROP TABLE surestep.journal"), replace(row, step_id="../x", attempt=-1)]
        for other in others:
            yield [*rows[:place], other, *rows[place + 1 :]]


@pytest.mark.parametrize("body", ["7", '{"$artifact": "../../etc/passwd"}'])
async def test_a_run_whose_journal_was_changed_says_so(body: str, paused: Agent, database_url: str) -> None:
    """Shown or gone on with, the run ends in a sentence; no file is read for the name in a row."""
    _set(database_url, "UPDATE surestep.journal SET body = %s::jsonb", body)
    for door in (paused.show, paused.resume, paused.drafts):
        with watched() as witness, pytest.raises(SurestepError, match=r"journal|has no result"):
            await door("t1")
        assert Path("/etc/passwd") not in witness.read


async def test_a_result_that_was_changed_is_not_used(paused: Agent, database_url: str) -> None:
    """A result's name says its hash, so bytes of somebody else's are not the result, also with a hash of theirs."""
    [first, _] = (await paused.show("t1")).steps
    assert first.output_ref is not None
    _set(database_url, "UPDATE surestep.artifacts SET body = %s", b'{"number": 9999}')
    with pytest.raises(ArtifactMissing, match="was changed"):
        await paused.output("t1", first.output_ref)
    _set(database_url, "UPDATE surestep.artifacts SET sha256 = encode(sha256(body), 'hex')")
    with pytest.raises(ArtifactMissing, match="was changed"):
        await paused.output("t1", first.output_ref)


async def test_a_secret_that_was_changed_is_none(database: Database) -> None:
    """Bytes that this key has not sealed open to nothing, however few they are; one moved to another name, too."""
    store = SealedSecrets(database, SealingKey(b"k" * 32, b"h" * 32))
    await store.keep("r0", {"p0": Kept("pin 4711", "")})
    assert (await store.read("r0", ["p0"]))["p0"].secret == "pin 4711"
    [moved] = await database.fetch("SELECT sealed FROM surestep.secrets")
    for number, sealed in enumerate((b"", b"x", b"x" * 12, b"x" * 13, b"x" * 200, moved["sealed"])):
        await database.execute(
            "INSERT INTO surestep.secrets (run_id, placeholder, sealed) VALUES ('r1', %s, %s)",
            (f"p{number + 1}", sealed),
        )
    assert await store.read("r1", [f"p{number}" for number in range(8)]) == {}


def _set(url: str, statement: str, *values: Any) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode(), values)


@pytest.mark.parametrize("folder", ["../outside", "{}/outside", "a/../../outside", "", ".", "a\\..\\b", "a//b", "a\0"])
def test_an_archive_is_in_its_place_and_nowhere_else(folder: str, tmp_path: Path) -> None:
    """A folder's name comes from a row: one that leads elsewhere is neither read nor deleted, nor written to."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "manifest.json").write_text("{}")
    place, folder = place_at(str(tmp_path / "archive")), folder.format(tmp_path)
    for work in (place.read, place.sizes, place.remove, lambda path: place.write(path, b"x")):
        with watched() as witness, pytest.raises(Unreadable, match="no path of an archive"):
            work(folder)
        assert not witness.written
    assert (tmp_path / "outside" / "manifest.json").exists()


@pytest.mark.parametrize("manifest", ["", "7", "[]", "{}", '{"format_version": 1}', '{"format_version": "x"}'])
def test_a_manifest_that_is_none_is_told(manifest: str, tmp_path: Path) -> None:
    """Whoever may write where archives are can lose one, and no more."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "manifest.json").write_text(manifest)
    with pytest.raises(Unreadable, match="none that Surestep has written"):
        read_file(place_at(str(tmp_path)), "a", "journal.jsonl")
    with pytest.raises(Unreadable, match="archived journal"):
        rows_from("r1", b'{"n": 1}\n')


def test_a_home_of_nobody_is_told() -> None:
    """`~name` of somebody who is not there is a sentence, not a traceback."""
    for work in (place_at, name_of):
        with pytest.raises(StorageUnavailable, match="somebody who is not there"):
            work("~nobody-is-called-so/x")
