"""What is counted of planners, by one query, against a walk over every row."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest

from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.planning import PlannerRecord, planner_records
from nodes.fold import fold

PROMPTS = (None, "aa", "bb")
Rows = list[tuple[str, dict[str, Any]]]


def drafted(chance: random.Random, run: int, number: int) -> tuple[dict[str, Any], Rows]:
    """One draft, with the questions it took: some lost with who asked, some failed, some asked twice."""
    source = chance.choice(["model", "local_replan", "global_replan", "template", "file"])
    asked = source not in ("template", "file")
    question = f"plan:{run}:{number}" if asked else None
    body: dict[str, Any] = {
        "name": question or f"{source}:{number}",
        "question": question,
        "revision": number,
        "purpose": "first",
        "source": source,
        "model": chance.choice(["m-1", "m-2"]) if asked else None,
        "mode": chance.choice([None, "tools", "text"]) if asked else None,
        "prompt_sha256": chance.choice(PROMPTS) if asked else None,
        "try": chance.choice([0, 0, 1, 2]) if asked else 0,
        "valid": chance.random() < 0.6,
        "repaired": chance.random() < 0.3,
        "faults": [],
    }
    rows: Rows = []
    for _ in range(chance.choice([1, 1, 2]) if asked else 0):
        reserved = {"key": question, "prompt_tokens": chance.randrange(90), "completion_tokens": 50, "cost": 0.25}
        rows.append(("reservation", reserved))
        if chance.random() < 0.8:
            spent = {"prompt_tokens": chance.randrange(90), "completion_tokens": chance.randrange(9), "cost": 0.5}
            rows.append(("model", {"key": question, "estimated_tokens": chance.randrange(5), **spent}))
    return body, [*rows, ("draft", body), *([("draft", body)] if chance.random() < 0.2 else [])]


async def store(database: Database, run_id: str, rows: Rows) -> None:
    """A run with these rows, by one owner after another."""
    await database.execute(
        "INSERT INTO surestep.runs (run_id, thread_id, request_id, goal, input, input_sha256)"
        " VALUES (%s, %s, %s, 'g', '{}', '')",
        (run_id, run_id, run_id),
    )
    for n, (kind, body) in enumerate(rows):
        await database.execute(
            "INSERT INTO surestep.journal (run_id, fence, n, kind, body) VALUES (%s, %s, %s, %s, %s::jsonb)",
            (run_id, n // 7, n, kind, jsonb(body)),
        )


def by_walking(runs: list[Rows]) -> dict[tuple[Any, ...], list[float]]:
    """The same figures, row by row, as a run's picture has them."""
    found: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0] * 9)
    for rows in runs:
        picture = fold((kind, None, 0, body) for kind, body in rows)
        for each in picture.drafts.values():
            figures = found[each["model"], each["prompt_sha256"], each["mode"], each["source"]]
            spent = dict(picture.models.get(each["question"] or "", {}))
            for name, amount in picture.reserved.get(each["question"] or "", {}).items():
                spent[name] = spent.get(name, 0) + amount
            first = each["try"] == 0
            figures[0] += first
            figures[1] += first and each["valid"]
            figures[2] += not first
            figures[3] += not each["valid"]
            figures[4] += each["repaired"]
            for at, name in enumerate(("prompt_tokens", "completion_tokens", "estimated_tokens", "cost"), 5):
                figures[at] += spent.get(name, 0)
    return dict(found)


def figures(record: PlannerRecord) -> list[float]:
    """The figures of a record, in the order of the walk."""
    return [
        record.asked, record.at_first, record.redrafts, record.refused, record.repaired, record.prompt_tokens,
        record.completion_tokens, record.estimated_tokens, record.cost,
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
async def test_the_query_counts_what_a_walk_over_all_rows_counts(database: Database, seed: int) -> None:
    """Per model, prompt, mode and source; rows that were written again, lost answers and foreign rows included."""
    chance = random.Random(seed)  # noqa: S311  # the same on each run
    runs: list[Rows] = []
    for run in range(12):
        rows: Rows = [("reservation", {"key": "step:s1:1", "prompt_tokens": 1000, "completion_tokens": 1, "cost": 9.0})]
        for number in range(chance.randrange(9)):
            rows += drafted(chance, run, number)[1]
        runs.append(rows)
        await store(database, f"run-{run}", rows)
    records = await planner_records(database)
    found = {(each.model, each.prompt_sha256, each.mode, each.source): figures(each) for each in records}
    assert found == by_walking(runs)
    assert len(found) > 10


async def test_only_drafts_since_a_moment_are_counted(database: Database) -> None:
    """What was judged before is left out, with what it has cost."""
    chance = random.Random(5)  # noqa: S311  # the same on each run
    await store(database, "r", drafted(chance, 1, 1)[1])
    [row] = await database.fetch("SELECT max(at) AS at FROM surestep.journal")
    assert len(await planner_records(database, row["at"] - timedelta(hours=1))) == 1
    assert await planner_records(database, row["at"] + timedelta(hours=1)) == []


async def test_of_no_drafts_there_is_no_record(database: Database) -> None:
    """And a share of nothing is none."""
    assert await planner_records(database) == []
    nobody = PlannerRecord(None, None, None, "file", 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
    assert nobody.valid_at_first is None
    assert PlannerRecord("m", None, None, "model", 4, 3, 1, 1, 0, 0, 0, 0, 0.0).valid_at_first == 0.75
