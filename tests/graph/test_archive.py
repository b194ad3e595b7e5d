"""Archive: what leaves the database is whole in files, its request has its answer still, and all else stays."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from checkpoints.archive_files import measured
from checkpoints.places import LocalPlace, place_at
from graph.gateway import Agent
from graph.opening import saver_for
from plans.decisions import Reject
from plans.errors import ArtifactMissing, StorageUnavailable, UnknownThread, UsageError
from tests.graph.conftest import OpenAgent
from tests.graph.keeping import LARGE, PLAN, QUESTION, files_below, kit, left, lines_of, rows_of
from tests.running import plan, step


@pytest.fixture
async def agent(agent_on: OpenAgent) -> Agent:
    opened: Agent = await agent_on([kit])
    return opened


async def test_a_run_moves_into_files_as_a_whole(agent: Agent, tmp_path: Path) -> None:
    """Every part of the run is in its folder, the manifest has each file's hash, and the database is empty."""
    result = await agent.run(plan=PLAN, thread_id="t/1 ü", request_id="q1")
    rows, head = await agent.engine.journal.read(result.run_id), await agent.engine.runs.get(result.run_id)
    report = await agent.archive(older_than=0)
    [moved] = report.archived
    assert (moved.run_id, report.left, report.files_deleted) == (result.run_id, (), 1)
    assert await left(agent) == {}
    assert head is not None
    assert head.ended_at is not None
    day = f"{head.ended_at.astimezone(UTC):%Y-%m-%d}"
    folder = tmp_path / "surestep/archive" / f"date={day}/thread=t%2F1%20%C3%BC/run={result.run_id}"
    assert moved.location == str(folder)
    files = files_below(folder)
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["format_version"] == 1
    assert {path: (told["size"], told["sha256"]) for path, told in manifest["files"].items()} == {
        path: measured(body) for path, body in files.items()
    }
    journal = lines_of(files["journal.jsonl"])
    assert [(row["fence"], row["n"], row["kind"], row["body"]) for row in journal] == [
        (row.fence, row.n, row.kind, row.body) for row in rows
    ]
    [revision] = lines_of(files["plans.jsonl"])
    assert [each["id"] for each in revision["plan"]["steps"]] == ["s1", "s2", "s3"]
    stored = {each["output_ref"]: each for each in lines_of(files["artifacts.jsonl"])}
    assert {f"artifacts/{ref}" for ref in stored} == {path for path in files if path.startswith("artifacts/")}
    assert max(each["size"] for each in stored.values()) > LARGE
    run = json.loads(files["run.json"])
    assert run["request"]["request_id"] == "q1"
    assert (run["status"], run["result"]["answer"], run["usage"]["steps"]) == ("done", "sent to ann", 3)
    assert set(run["times"]) == {"created_at", "ended_at"}


async def test_approvals_are_archived_with_who_decided(agent: Agent, tmp_path: Path) -> None:
    """What people were asked, and their answer, is with the run."""
    paused = await agent.run(plan=QUESTION, thread_id="t")
    await agent.resume("t", decisions={paused.approvals[0].approval_id: Reject(message="no")}, by="ann")
    [moved] = (await agent.archive(older_than=0)).archived
    [approval] = lines_of(files_below(Path(moved.location))["approvals.jsonl"])
    assert (approval["status"], approval["decided_by"], approval["decision"]["message"]) == ("rejected", "ann", "no")
    [stone] = await agent.engine.tombstones.of_thread("t")
    assert [call.partition("|")[0] for call in stone.effects["rejected"]] == ["send"]


async def test_the_same_request_after_the_archive_has_the_same_answer(agent: Agent) -> None:
    """Rule 16: the request is still one run; its result is the stored one and says that it is archived."""
    first = await agent.run(plan=PLAN, thread_id="t", request_id="q1")
    [moved] = (await agent.archive(older_than=0)).archived
    again = await agent.run(plan=PLAN, request_id="q1")
    assert again == first.model_copy(update={"archived": moved.location})
    assert again.as_json()["archived"] == moved.location
    assert await left(agent) == {}


async def test_another_input_under_an_archived_request_is_refused(agent: Agent) -> None:
    """The archive does not free a request id for something else."""
    await agent.run(plan=PLAN, thread_id="t", request_id="q1")
    await agent.archive(older_than=0)
    with pytest.raises(UsageError, match="already made with another goal"):
        await agent.run(plan=QUESTION, request_id="q1")


async def test_the_graph_gives_the_stored_answer_of_an_archived_request(agent: Agent) -> None:
    """A server that sends a request again after the archive gets the answer, by the graph's own way to its end."""
    await agent.run(plan=PLAN, thread_id="t", request_id="q1")
    await agent.archive(older_than=0)
    config: Any = {"configurable": {"thread_id": "u"}}
    given: Any = {"goal": "again", "plan": PLAN, "request_id": "q1"}
    seen = [node async for update in agent.graph.astream(given, config, stream_mode="updates") for node in update]
    assert seen == ["plan", "validate", "finish"]
    state = (await agent.graph.aget_state(config)).values
    assert (state["status"], state["answer"]) == ("done", "sent to ann")
    assert await rows_of(agent, "runs") == 0
    after = await agent.graph.ainvoke({"goal": "a new one", "plan": QUESTION}, config)
    assert after["status"] != "done"
    assert await rows_of(agent, "runs") == 1


async def test_show_reads_an_archived_thread(agent: Agent) -> None:
    """Where a run stood can be seen after the archive, its results too; a thread takes its next goal as before."""
    first = await agent.run(plan=PLAN, thread_id="t")
    await agent.archive(older_than=0)
    shown = await agent.show("t")
    assert shown.model_copy(update={"archived": None}) == first
    reference = shown.steps[0].output_ref
    assert reference is not None
    assert json.loads(await agent.output("t", reference)) == {"text": "x" * LARGE}
    assert (await agent.run(plan=QUESTION, thread_id="t")).status == "paused"
    assert (await agent.show("t")).status == "paused"


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"{}\n"), Path.unlink], ids=["changed", "deleted"])
async def test_an_archive_that_was_changed_is_not_believed(agent: Agent, spoil: Callable[[Path], Any]) -> None:
    """A file with other bytes than the manifest says, or none, is told, not read."""
    await agent.run(plan=PLAN, thread_id="t")
    [moved] = (await agent.archive(older_than=0)).archived
    spoil(Path(moved.location, "journal.jsonl"))
    with pytest.raises(ArtifactMissing, match=r"journal\.jsonl"):
        await agent.show("t")


async def test_only_what_is_old_and_over_is_archived(agent: Agent) -> None:
    """A young run stays; so does every run of a thread on which one may still go on; --thread means only that one."""
    await agent.run(plan=PLAN, thread_id="over")
    await agent.run(plan=PLAN, thread_id="other")
    await agent.run(plan=PLAN, thread_id="goes on")
    await agent.run(plan=QUESTION, thread_id="goes on")
    assert (await agent.archive()).archived == ()
    dry = await agent.archive(older_than=0, dry_run=True)
    assert {run.thread_id for run in dry.archived} == {"over", "other"}
    assert await rows_of(agent, "runs") == 4
    assert [run.thread_id for run in (await agent.archive(older_than=0, thread_id="over")).archived] == ["over"]
    assert [run.thread_id for run in (await agent.archive(older_than="0s")).archived] == ["other"]
    assert [run.thread_id for run in await agent.runs()] == ["goes on", "goes on"]


async def test_a_file_that_another_run_refers_to_stays(agent: Agent, tmp_path: Path) -> None:
    """The same bytes of two runs are one file: it goes with the last of them."""
    stored = tmp_path / "surestep/artifacts"
    await agent.run(plan=PLAN, thread_id="a")
    await agent.run(plan=PLAN, thread_id="b")
    assert len(files_below(stored)) == 1
    assert (await agent.archive(older_than=0, thread_id="a")).files_deleted == 0
    assert len(files_below(stored)) == 1
    assert (await agent.archive(older_than=0, thread_id="b")).files_deleted == 1
    assert files_below(stored) == {}


async def test_a_file_that_a_run_may_just_be_storing_stays(agent: Agent, tmp_path: Path) -> None:
    """While a run is driven, a file that was written within the hour may be one it has not named yet."""
    await agent.run(plan=PLAN, thread_id="a")
    await agent.run(plan=QUESTION, thread_id="b")
    latest = await agent.engine.runs.latest("b")
    assert latest is not None
    lease = await agent.engine.leases.acquire(latest.run_id, "somebody")
    assert (await agent.archive(older_than=0)).files_left == 1
    assert len(files_below(tmp_path / "surestep/artifacts")) == 1
    await agent.engine.leases.release(lease)
    assert (await agent.archive(older_than=0)).files_deleted == 1
    assert files_below(tmp_path / "surestep/artifacts") == {}


async def test_a_living_thread_keeps_its_latest_checkpoint(agent: Agent) -> None:
    """Runs that are over and young stay, without the history of their checkpoints; the thread goes on from its last."""
    await agent.run(plan=PLAN, thread_id="t")
    config: Any = {"configurable": {"thread_id": "t"}}
    before = await agent.graph.aget_state(config)
    assert await rows_of(agent, "checkpoints") > 3
    await agent.engine.database.execute("UPDATE surestep.runs SET ended_at = ended_at - interval '2 hours'")
    report = await agent.archive()
    assert (report.archived, report.threads_trimmed) == ((), 1)
    assert await rows_of(agent, "checkpoints") == 1
    assert (await agent.graph.aget_state(config)).values == before.values
    assert (await agent.archive()).threads_trimmed == 0


async def test_a_checkpoint_that_was_saved_behind_the_last_run_goes_with_the_next_archive(agent: Agent) -> None:
    """A process that saves late brings nothing back for good; what was saved lately may be a run that is beginning."""
    await agent.run(plan=PLAN, thread_id="t")
    await agent.archive(older_than=0)
    await agent.run(plan=QUESTION, thread_id="goes on")
    others = await rows_of(agent, "checkpoints")
    await saver_for(agent.engine).acopy_thread("goes on", "t")
    await agent.archive()
    assert await rows_of(agent, "checkpoints") == 2 * others
    assert (await agent.archive(older_than=0)).threads_trimmed == 1
    assert await rows_of(agent, "checkpoints") == others


async def test_a_place_that_cannot_be_written_deletes_nothing(agent: Agent, tmp_path: Path) -> None:
    """A sentence that names the place, every row as before, and the next archive is whole."""
    await agent.run(plan=PLAN, thread_id="t")
    before = await left(agent)
    (tmp_path / "no folder").write_text("a file")
    with pytest.raises(StorageUnavailable, match="no folder"):
        await agent.archive(older_than=0, to=str(tmp_path / "no folder"))
    assert await left(agent) == before
    assert len((await agent.archive(older_than=0)).archived) == 1


async def test_what_was_written_is_looked_at_before_anything_is_deleted(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place that confirms and does not keep is found out while the rows are still there."""
    from checkpoints.places import LocalPlace

    write = LocalPlace.write

    def forgets(self: LocalPlace, path: str, body: bytes) -> None:
        write(self, path, body[:-1] if path.endswith("journal.jsonl") else body)

    await agent.run(plan=PLAN, thread_id="t")
    monkeypatch.setattr(LocalPlace, "write", forgets)
    with pytest.raises(StorageUnavailable, match=r"not all there: journal\.jsonl"):
        await agent.archive(older_than=0)
    assert await rows_of(agent, "runs") == 1


async def test_a_run_whose_result_is_lost_stays_and_is_named(agent: Agent, tmp_path: Path) -> None:
    """It cannot be archived whole, so it is not; the others are."""
    await agent.run(plan=PLAN, thread_id="broken")
    await agent.run(plan=plan(step("s1", "text", args={"size": 5})), thread_id="sound")
    shutil.rmtree(tmp_path / "surestep/artifacts")
    report = await agent.archive(older_than=0)
    assert [run.thread_id for run in report.archived] == ["sound"]
    assert [(run.thread_id, run.busy) for run in report.left] == [("broken", False)]
    assert "is gone" in report.left[0].why


async def test_two_archives_at_once_move_each_run_once(agent_on: OpenAgent) -> None:
    """The lease decides which of them moves a run; nothing is lost and nothing is there twice."""
    one, other = await agent_on([kit]), await agent_on([kit])
    for number in range(4):
        await one.run(plan=PLAN, thread_id=f"t{number}")
    reports = await asyncio.gather(one.archive(older_than=0), other.archive(older_than=0))
    moved = [run.thread_id for report in reports for run in report.archived]
    assert sorted(moved) == [f"t{number}" for number in range(4)]
    await one.archive(older_than=0)
    assert await left(one) == {}
    for number in range(4):
        assert (await other.show(f"t{number}")).answer == "sent to ann"


async def test_a_thread_that_goes_on_while_it_is_archived_loses_nothing(agent_on: OpenAgent) -> None:
    """Run after run on one thread, and an archive all the time: each request still has the answer it was given."""
    worker, keeper = await agent_on([kit]), await agent_on([kit])

    async def keep_archiving() -> None:
        while True:
            await keeper.archive(older_than=0)

    archiving = asyncio.create_task(keep_archiving())
    given = {}
    for number in range(5):
        sized = plan(step("s1", "text", args={"size": number + 1}), answer="${s1.text}!")
        given[number] = (sized, await worker.run(plan=sized, thread_id="t", request_id=f"q{number}"))
    archiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await archiving
    await keeper.archive(older_than=0)
    assert await left(worker) == {}
    for number, (sized, first) in given.items():
        again = await keeper.run(plan=sized, request_id=f"q{number}")
        assert (again.run_id, again.answer, again.status) == (first.run_id, "x" * (number + 1) + "!", "done")


async def test_an_archive_that_is_cancelled_in_the_middle_of_a_file_ends_it_first(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread cannot be stopped: its file is ended before the run is let go, so that the next archive meets nobody."""
    await agent.run(plan=PLAN, thread_id="t")
    begun, go_on, writing = threading.Event(), threading.Event(), Counter[str]()
    write = LocalPlace.write

    def slow(self: LocalPlace, path: str, body: bytes) -> None:
        writing[path] += 1
        assert writing[path] == 1, f"{path} is written by two at once"
        begun.set()
        assert go_on.wait(20)
        write(self, path, body)
        writing[path] -= 1

    monkeypatch.setattr(LocalPlace, "write", slow)
    first = asyncio.create_task(agent.archive(older_than=0))
    assert await asyncio.to_thread(begun.wait, 20)
    first.cancel()
    second = asyncio.create_task(agent.archive(older_than=0))
    await asyncio.sleep(0.2)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    report = await second
    assert [left.busy for left in report.left] == [True] or len(report.archived) == 1
    await agent.archive(older_than=0)
    assert await left(agent) == {}


@pytest.mark.usefixtures("s3_server")
async def test_archive_and_results_may_live_in_buckets(agent_on: OpenAgent, tmp_path: Path) -> None:
    """Through S3: a run is archived, shown, and erased; nothing is left in either place."""
    place = f"s3://results/{tmp_path.name}"
    agent = await agent_on([kit], artifacts_url=f"{place}/large", archive_url=f"{place}/archive")
    first = await agent.run(plan=PLAN, thread_id="t/ü *", request_id="q1")
    report = await agent.archive(older_than=0)
    assert (report.archived[0].location.startswith(f"{place}/archive/date="), report.files_deleted) == (True, 1)
    shown = await agent.show("t/ü *")
    assert shown.model_copy(update={"archived": None}) == first
    assert {path.split("/")[2].partition("=")[0] for path in place_at(place).sizes("archive")} == {"run"}
    await agent.erase("t/ü *")
    assert place_at(place).sizes("archive") == {}
    assert place_at(place).sizes("large") == {}


async def test_a_bucket_that_cannot_be_reached_deletes_nothing(
    agent: Agent, s3_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that is not there, and a server that is not there: a sentence, and every row as before."""
    await agent.run(plan=PLAN, thread_id="t")
    before = await left(agent)
    with pytest.raises(StorageUnavailable, match="s3://nowhere must take a file"):
        await agent.archive(older_than=0, to="s3://nowhere")
    assert await left(agent) == before


async def test_a_thread_that_was_never_is_told(agent: Agent) -> None:
    """Neither a run nor a tombstone: the thread is unknown."""
    with pytest.raises(UnknownThread, match="no run was ever started"):
        await agent.show("never")
