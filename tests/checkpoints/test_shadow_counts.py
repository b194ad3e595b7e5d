"""Agreement of candidates in PostgreSQL: added up over workers, and only the latest differences are kept."""

from __future__ import annotations

import asyncio

from checkpoints.database import Database
from checkpoints.shadow_counts import PostgresShadows
from plans.shadowing import AGREED, KEPT_DIFFERENCES, Agreement, Pair, differed, failed

PAIR = Pair("present", "next", "1")


def row(stored: dict[Pair, Agreement], pair: Pair = PAIR) -> tuple[int, int, int, int]:
    found = stored[pair]
    return found.agreed, found.differed, found.failed, found.in_a_row


async def test_counts_are_added_and_a_break_begins_the_row_anew(database: Database) -> None:
    """What was in a row before goes on with what agrees, and ends with what does not."""
    shadows = PostgresShadows(database)
    assert await shadows.counts() == {}
    await shadows.add({PAIR: AGREED.then(AGREED)})
    await shadows.add({PAIR: AGREED})
    assert row(await shadows.counts()) == (3, 0, 0, 3)
    await shadows.add({PAIR: AGREED.then(differed("h", ["result.a: new"])).then(AGREED).then(AGREED)})
    assert row(await shadows.counts()) == (6, 1, 0, 2)
    await shadows.add({PAIR: failed("h", "TIMEOUT")})
    assert row(await shadows.counts()) == (6, 1, 1, 0)
    noted = [each.difference for each in await shadows.differences("present", "next")]
    assert [each.places for each in noted] == [("failed: TIMEOUT",), ("result.a: new",)]


async def test_workers_that_count_at_the_same_time_lose_nothing(database: Database) -> None:
    """Many at once, of several pairs, in any order."""
    pairs = [Pair(tool, f"{tool}2", "1") for tool in "abc"]
    workers = [PostgresShadows(database) for _ in range(3)]
    batches = [pairs[n % 3 :] + pairs[: n % 3] for n in range(30)]
    await asyncio.gather(*(workers[n % 3].add(dict.fromkeys(batch, AGREED)) for n, batch in enumerate(batches)))
    stored = await workers[0].counts()
    assert {pair.tool: row(stored, pair) for pair in pairs} == dict.fromkeys("abc", (30, 0, 0, 30))


async def test_another_edition_counts_from_nothing(database: Database) -> None:
    """What agreed with another version, or by another comparison, says nothing about this one."""
    shadows = PostgresShadows(database)
    await shadows.add({PAIR: AGREED, Pair("present", "next", "2"): failed("h", "TIMEOUT")})
    stored = await shadows.counts()
    assert (row(stored), row(stored, Pair("present", "next", "2"))) == ((1, 0, 0, 1), (0, 0, 1, 0))


async def test_a_row_can_be_broken(database: Database) -> None:
    """A candidate that was taken back has to agree anew; the sums stay."""
    shadows = PostgresShadows(database)
    await shadows.add({PAIR: AGREED.then(AGREED)})
    await shadows.break_row(PAIR)
    assert row(await shadows.counts()) == (2, 0, 0, 0)


async def test_only_the_latest_differences_of_a_pair_are_kept(database: Database) -> None:
    """However many there are, and of this pair only."""
    shadows = PostgresShadows(database)
    other = Pair("present", "third", "1")
    await shadows.add({other: differed("other", ["x"])})
    for start in (0, 15, 30):
        batch = Agreement()
        for number in range(start, start + 15):
            batch = batch.then(differed(f"h{number}", ["x"]))
        await shadows.add({PAIR: batch})
    kept = [each.difference.args_sha256 for each in await shadows.differences("present", "next")]
    assert kept == [f"h{number}" for number in range(44, 44 - KEPT_DIFFERENCES, -1)]
    assert len(await shadows.differences("present", "third")) == 1
    assert row(await shadows.counts()) == (0, 45, 0, 0)
