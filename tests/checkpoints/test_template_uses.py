"""How often templates were used and have served: once per run, and set aside where they begin to fail."""

from __future__ import annotations

import asyncio

import pytest

from checkpoints.database import Database
from checkpoints.runs import Runs
from checkpoints.template_uses import FRESH_S, Standing, TemplateServed, TemplateUses
from plans.errors import StaleOwner
from tests.checkpoints.scenes import owned_run


async def end(database: Database, number: int, succeeded: bool | None, *, sha256: str = "a") -> None:
    """One run of the template `late` that ends so."""
    run_id = f"r{number}"
    await owned_run(database, run_id)
    served = TemplateServed("late", sha256, succeeded, None if succeeded is not False else "TOOL_ERROR")
    await Runs(database).set_status(run_id, 1, "done" if succeeded else "failed", {}, served=served)


async def standing(database: Database, sha256: str = "a") -> Standing:
    return (await TemplateUses(database).standing())[("late", sha256)]


async def test_a_run_counts_once_however_often_its_end_is_written(database: Database) -> None:
    """Who died after the end was stored writes it again, and two at once are one."""
    await owned_run(database, "r1")
    served = TemplateServed("late", "a", succeeded=True)
    for _ in range(2):
        await asyncio.gather(*(Runs(database).set_status("r1", 1, "done", {}, served=served) for _ in range(5)))
    found = await standing(database)
    assert (found.used, found.succeeded, found.failed, found.recent) == (1, 1, 0, (True,))
    assert found.success_rate == 1.0


async def test_what_a_stale_owner_says_counts_nothing(database: Database) -> None:
    """The run's end and its count are one commit, and both are the owner's."""
    await owned_run(database, "r1", fence=2)
    with pytest.raises(StaleOwner):
        await Runs(database).set_status("r1", 1, "done", {}, served=TemplateServed("late", "a", succeeded=True))
    assert await TemplateUses(database).standing() == {}


async def test_a_template_that_starts_failing_is_set_aside(database: Database) -> None:
    """With five of its last ten runs known and less than 60 % of them well; what says nothing counts as a use only."""
    for number, succeeded in enumerate([True, None, False, True, False]):
        await end(database, number, succeeded)
    assert (await standing(database)).set_aside_at is None
    await end(database, 5, succeeded=False)
    found = await standing(database)
    assert found.set_aside_at is not None
    assert found.because == "2 of its last 5 runs succeeded; the last failure: TOOL_ERROR"
    assert (found.used, found.succeeded, found.failed) == (6, 2, 3)
    assert await TemplateUses(database).aside() == {("late", "a")}


async def test_only_the_last_ten_runs_are_judged(database: Database) -> None:
    """Five failures in a row after many successes set it aside; before the fifth, six of ten were well."""
    for number in range(12):
        await end(database, number, succeeded=True)
    for number in range(12, 16):
        await end(database, number, succeeded=False)
    assert (await standing(database)).set_aside_at is None
    await end(database, 16, succeeded=False)
    found = await standing(database)
    assert found.set_aside_at is not None
    assert found.recent == (False,) * 5 + (True,) * 5


async def test_the_reason_stays_as_it_was(database: Database) -> None:
    """Runs of a template that is named while it is set aside are counted, and change neither window nor reason."""
    for number in range(5):
        await end(database, number, succeeded=False)
    before = await standing(database)
    await end(database, 5, succeeded=True)
    after = await standing(database)
    assert (after.because, after.set_aside_at) == (before.because, before.set_aside_at)
    assert (after.used, after.succeeded) == (6, 1)


async def test_another_content_is_another_template(database: Database) -> None:
    """A file that was mended starts anew, and so does one that is restored."""
    for number in range(5):
        await end(database, number, succeeded=False)
    await end(database, 5, succeeded=True, sha256="b")
    assert (await standing(database, "b")).set_aside_at is None
    uses = TemplateUses(database)
    assert await uses.restore("late", "a")
    assert not await uses.restore("late", "a")
    assert await uses.aside() == frozenset()
    await end(database, 6, succeeded=False)
    assert (await standing(database)).recent == (False,)
    assert (await standing(database)).set_aside_at is None


async def test_a_worker_knows_within_two_seconds(database: Database) -> None:
    """One query then serves all runs of two seconds; what this worker restores it knows at once."""
    now = 0.0
    uses = TemplateUses(database, monotonic=lambda: now)
    assert await uses.aside() == frozenset()
    for number in range(5):
        await end(database, number, succeeded=False)
    assert await uses.aside() == frozenset()
    now = FRESH_S
    assert await uses.aside() == {("late", "a")}
    await uses.restore("late", "a")
    assert await uses.aside() == frozenset()


async def test_the_counts_outlive_the_runs(database: Database) -> None:
    """A run that goes into the archive takes its own row along; what it has added stays."""
    await end(database, 1, succeeded=True)
    await database.execute("DELETE FROM surestep.runs")
    assert await database.fetch("SELECT FROM surestep.template_uses") == []
    assert (await standing(database)).used == 1
