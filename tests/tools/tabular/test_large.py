"""Tests of large files: every tool over 60 MB, and over 300 MB, within bounded memory, and with right answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools.tabular import large_child

ROOT = Path(__file__).resolve().parents[3]
BLOCK = 1_000


def write_orders(path: Path, megabytes: int) -> int:
    """Writes blocks of 1,000 orders until the file is large enough; gives their number. In each block one order is
    shipped before it was ordered, one amount is negative and one is no number."""
    blocks = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("order_id,customer,note,status,amount,quantity,ordered_at,shipped_at\n")
        while file.tell() < megabytes * 1_000_000:
            file.writelines(_order(blocks * BLOCK + place, place) for place in range(BLOCK))
            blocks += 1
    return blocks


def _order(number: int, place: int) -> str:
    amount = {7: "-5.00", 11: "unknown"}.get(place, f"{number % 977}.{number % 100:02}")
    month, day = number % 12 + 1, number % 28 + 1
    shipped = f"2025-{month:02}-{day:02} 18:00:00" if place != 3 else "2024-01-01 00:00:00"
    note = f'"said ""ok"", line {number}"'
    return (
        f"A{number:09},Customer {number % 50_021},{note},{('paid', 'sent')[number % 2]},{amount},{number % 5},"
        f"2025-{month:02}-{day:02}T09:30:00,{shipped}\r\n"
    )


def run(tmp_path: Path, megabytes: int) -> tuple[int, dict[str, Any]]:
    """The number of blocks, and what a process of its own found and took."""
    path, out = tmp_path / "large.csv", tmp_path / "out"
    out.mkdir()
    blocks = write_orders(path, megabytes)
    done = subprocess.run(
        [sys.executable, large_child.__file__, str(path), str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return blocks, json.loads(done.stdout)


def assert_right(blocks: int, found: dict[str, Any]) -> None:
    """What was sown is found, to the last row."""
    assert found["rows"] == blocks * BLOCK
    assert found["types"] == ["text", "text", "text", "text", "number", "integer", "datetime", "datetime"]
    assert found["bad"] == found["counts"]["negative_amount"] == found["counts"]["bad_values"] == blocks
    assert found["backwards"] == found["counts"]["time_order"] == blocks
    assert found["first"] == 5
    assert found["groups"] == 12
    assert found["total"] == blocks * BLOCK * 2
    assert found["exported"] == blocks * BLOCK // 5


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_60_mb_stay_far_below_the_limit(tmp_path: Path) -> None:
    """All tools over 60 MB take less than 900 MB of memory."""
    blocks, found = run(tmp_path, 60)
    assert_right(blocks, found)
    assert found["peak_mb"] < 900


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_300_mb_stay_within_the_limit(tmp_path: Path) -> None:
    """All tools over 300 MB take less than 1.5 GB of memory."""
    blocks, found = run(tmp_path, 300)
    assert_right(blocks, found)
    assert found["peak_mb"] < 1_500
