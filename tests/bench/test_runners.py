"""The bench's runners do the work that a recipe says, once per step and in the order of its dependencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.peers import ours, plain, raw
from bench.peers.peer import Peer
from bench.recipes import Recipe
from bench.server import Server, fetched
from bench.w2 import TABLE_BYTES
from bench.w4 import killed
from bench.w5 import measure as safeguards
from bench.w6 import measure as judged
from bench.w7 import BOUND, chain, each_failing, fan
from bench.w8 import plan_of, timed, writing
from bench.work import Work, payload
from checkpoints.database import Database
from plans.errors import ConfigurationError
from plans.plan import Plan
from plans.schedule import remaining_path
from tools.orders.toolkit import orders
from tools.registry import Registry
from tools.tabular.toolkit import tabular

RECIPES = (
    Recipe("w1", "random", 10, seed=3),
    Recipe("w1-failing", "random", 12, seed=7, failing=0.3, wait_s=0.01),
    Recipe("w2-fan", "fan", 10, failing=0.3, wait_s=0.0),
    Recipe("w2-chain", "chain", 10),
    Recipe("w2-effects", "chain", 10, failing=0.3, wait_s=0.0, effects=True),
    Recipe("w3", "ten", 10, copies=3),
    Recipe("w4", "layers", 30),
)


@asynccontextmanager
async def opened(peer: str, database_url: str, folder: Path) -> AsyncIterator[Peer]:
    """One of the peers that need nothing beyond what tests have."""
    module = {"surestep": ours, "asyncio": plain}[peer]
    async with module.opened(peer, database_url, folder, None) as found:
        yield found


@pytest.mark.parametrize("peer", ["surestep", "asyncio"])
async def test_every_recipe_is_run_in_full_and_in_order(peer: str, database_url: str, tmp_path: Path) -> None:
    """Each step's work is done once per copy, once more where it fails, and after that of its dependencies."""
    async with opened(peer, database_url, tmp_path) as found:
        for recipe in RECIPES:
            work = Work(recipe)
            await found.run(work)
            calls = Counter(number for number, _, _ in work.spans)
            expected = {task.number: recipe.copies + task.fails for task in work.tasks}
            assert calls == expected, recipe.name
            if recipe.copies == 1:
                began = {number: begin for number, begin, _ in work.spans}
                ended = {number: end for number, _, end in work.spans}
                late = [task for task in work.tasks if any(ended[need] > began[task.number] for need in task.after)]
                assert late == []


async def test_the_limit_starts_the_longest_path_first(tmp_path: Path) -> None:
    """With one place, asyncio always takes a ready step with the longest path behind it, as Surestep does."""
    work = Work(Recipe("order", "layers", 30, concurrency=1))
    async with opened("asyncio", "", tmp_path) as found:
        await found.run(work)
    remaining = remaining_path({str(task.number): tuple(map(str, task.after)) for task in work.tasks})
    done: set[int] = set()
    for number, _, _ in work.spans:
        ready = [task.number for task in work.tasks if task.number not in done and done.issuperset(task.after)]
        assert remaining[str(number)] == max(remaining[str(each)] for each in ready)
        done.add(number)
    assert len({remaining[str(number)] for number in range(10)}) > 1


async def test_raw_commits_leave_two_rows_per_step(database_url: str, tmp_path: Path, database: Database) -> None:
    """What the effects are compared with is one intent and one outcome per step, each committed."""
    async with raw.opened("raw", database_url, tmp_path, None) as found:
        await found.run(Work(Recipe("raw", "chain", 5)))
    rows = await database.fetch(
        "SELECT (SELECT count(*) FROM intents) AS intents, count(*) AS outcomes, min(length(body)) AS size"
        " FROM outcomes"
    )
    assert rows == [{"intents": 5, "outcomes": 5, "size": 2048}]


def test_a_killed_run_is_resumed_and_counted(postgres_url: str, tmp_path: Path) -> None:
    """A process that is really killed in the middle of a plan repeats nothing that was finished, and ends the rest."""
    server = Server(postgres_url, tmp_path)
    found = killed(server, "surestep", 60, 0)
    assert found.finished_again == 0
    assert found.ended_again <= found.unfinished <= 8 + 64
    assert found.first_step_s > 0


def test_each_layer_of_a_call_is_measured(postgres_url: str, tmp_path: Path) -> None:
    """Every figure of a call's safeguards comes from calls that were really made, and is more than nothing."""
    lines = safeguards(Server(postgres_url, tmp_path), 1, (20,))
    assert lines[0].value is not None
    assert lines[0].value > 0
    assert {"break_circuit", "limit", "hold_deadline"} <= {line.what.rpartition(" ")[2] for line in lines}


def test_long_plans_are_judged_for_what_they_are(postgres_url: str, tmp_path: Path) -> None:
    """What is timed finds nothing in a right plan and enough in a wrong one; more steps take longer."""
    small, large = (judged(Server(postgres_url, tmp_path), 1, (size,)) for size in (5, 300))
    assert [line.what for line in large] == ["validate: 300 steps without a fault", "validate: 300 steps, all wrong"]
    for few, many in zip(small, large, strict=True):
        assert few.value is not None
        assert many.value is not None
        assert 0 < few.value < many.value


async def test_a_small_result_stays_in_its_row(database_url: str, tmp_path: Path) -> None:
    """A result of 2 KB takes less than 1.6 times its size; a run's growth is that and more, over all our tables."""
    async with opened("surestep", database_url, tmp_path) as found:
        [(before,)] = fetched(database_url, TABLE_BYTES)
        await found.run(Work(Recipe("bytes", "fan", 500)))
        [(after,)] = fetched(database_url, TABLE_BYTES)
    [(results,)] = fetched(database_url, "SELECT pg_total_relation_size('surestep.artifacts')")
    assert 500 * 2048 < int(str(results)) < 500 * 2048 * 1.6 < int(str(after)) - int(str(before))


def test_a_server_that_does_not_wait_for_the_disk_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """Nothing is measured on a server whose commits are not durable, as that of the tests is."""
    with pytest.raises(ConfigurationError, match="fsync and synchronous_commit and full_page_writes must be on"):
        Server(postgres_url, tmp_path).settings()


def test_recipes_are_the_same_for_everybody() -> None:
    """A recipe says the same steps in each process: the same dependencies, durations, failures and results."""
    for recipe in RECIPES:
        assert recipe.tasks() == recipe.tasks()
    assert payload(7, 2048) == payload(7, 2048) != payload(8, 2048)
    assert len(payload(7, 2048)) == 2048


@pytest.mark.parametrize("plan", [chain(2), chain(8), fan(8), fan(30)], ids=["two", "chain", "fan", "wide"])
def test_mending_one_step_costs_less_than_a_seventh_of_planning_anew(plan: Plan) -> None:
    """Whichever step fails, the prompt of a local replan has at most 15 % of the tokens of a full one."""
    costs = list(each_failing(plan, Registry.of(orders, tabular)))
    assert len(costs) == len(plan.steps)
    assert 0 < max(cost.ratio for cost in costs) <= BOUND


async def test_the_first_result_and_the_end_of_a_plan_that_is_still_written_are_timed(
    database_url: str, tmp_path: Path
) -> None:
    """With and without an early start the run is done, and its first result comes before its end."""
    with writing(plan_of(4), 0.1) as endpoint:
        for eager in (True, False):
            first, end = await timed(database_url, tmp_path, endpoint, eager=eager)
            assert 0 < first < end
