"""Tests of the toolkit as planners see it: names, effects, cheap import, words in two languages, one reading."""

from __future__ import annotations

import gc
import json
import string
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from plans.failure import ToolFailure
from tests.tools.tabular.conftest import ORDERS, Desk
from tools.registry import Registry
from tools.tabular import tabular
from tools.tabular.arguments import Reading
from tools.tabular.opening import _read
from tools.tabular.pace import Pace
from tools.tabular.phrases import say
from tools.tabular.shelf import Key, Shelf
from tools.tabular.table import Table
from tools.tabular.words_en import WORDS as ENGLISH
from tools.tabular.words_zh import WORDS as CHINESE

ARGUMENTS = {
    "describe_table": ("read", ["path"]), "check_fields": ("read", ["path"]),
    "find_anomalies": ("idempotent", ["path"]), "aggregate": ("read", ["path"]),
    "export_rows": ("idempotent", ["path", "output"]), "render_report": ("idempotent", ["title"]),
}  # fmt: skip


def test_the_surface_is_stable() -> None:
    """Six tools, none of them risky, with the arguments that templates rely on."""
    registry = Registry.of(tabular)
    assert {name: (tool.effect, tool.input_schema["required"]) for name, tool in registry.items()} == ARGUMENTS
    assert {tool.risk for tool in registry.values()} == {"low"}
    assert all(len(tool.spec.description) > 80 for tool in registry.values())
    assert all(tool.output_schema for tool in registry.values())


def test_importing_the_toolkit_is_cheap() -> None:
    """No table, chart or template library is loaded before the first call."""
    heavy = "{'polars', 'altair', 'vl_convert', 'fastexcel', 'xlsxwriter', 'jinja2', 'charset_normalizer'}"
    code = f"import sys; from tools.tabular import tabular; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_both_languages_say_the_same() -> None:
    """Every sentence exists in both, with the same holes; only English knows a singular."""
    singular = {key for key in ENGLISH if key.endswith("_one")}
    assert ENGLISH.keys() - singular == CHINESE.keys()
    for key, sentence in CHINESE.items():
        assert _holes(ENGLISH[key]) == _holes(sentence), key
    assert all(key.removesuffix("_one") in ENGLISH for key in singular)


def _holes(sentence: str) -> set[str]:
    return {hole for _, hole, _, _ in string.Formatter().parse(sentence) if hole}


def test_one_is_singular() -> None:
    """1 row, 2 rows; thousands are grouped."""
    assert say("en", "ragged_short", count=1) == "1 ragged row"
    assert say("en", "ragged_short", count=1_234) == "1,234 ragged rows"
    assert say("zh", "ragged_short", count=1) == "1 行字段数不符"


def key(name: str) -> Key:
    """A key for the shelf."""
    return Key(Path(name), 1, 1, 1, None, Reading())


def test_a_table_is_read_once(desk: Desk) -> None:
    """Threads that want the same table wait for one reading."""
    table, shelf, reads = desk.table("a,b\n1,2\n"), Shelf(), []
    gate = threading.Barrier(4)

    def read(wanted: Key) -> Table:
        reads.append(wanted)
        time.sleep(0.05)
        return table

    def want() -> None:
        gate.wait()
        assert shelf.take(key("x"), read) is table

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1


def test_a_failed_reading_is_tried_again(desk: Desk) -> None:
    """A failure is not kept: whoever comes next hears of it anew, or succeeds."""
    table, shelf = desk.table("a,b\n1,2\n"), Shelf()

    def fails(_: Key) -> Table:
        raise ToolFailure("INVALID_INPUT", "damaged")

    with pytest.raises(ToolFailure):
        shelf.take(key("x"), fails)
    assert shelf.take(key("x"), lambda _: table) is table


def test_the_shelf_is_small(desk: Desk) -> None:
    """The table used least recently goes first."""
    table, shelf, reads = desk.table("a,b\n1,2\n"), Shelf(kept=2), []

    def read(wanted: Key) -> Table:
        reads.append(wanted.path.name)
        return table

    for name in ("a", "b", "a", "c", "a", "b"):
        shelf.take(key(name), read)
    assert reads == ["a", "b", "c", "b"]


def test_a_changed_file_is_read_anew(desk: Desk) -> None:
    """The same path with other content is another table."""
    path = desk.file("a,b\n1,2\n")
    assert desk.describe(path).rows == 1
    assert desk.describe(desk.file("a,b\n1,2\n3,4\n")).rows == 2


def test_progress_is_told_and_never_goes_back(desk: Desk) -> None:
    """Long work says how far it is, from 0 towards 1."""
    desk.find(desk.file("order_id,amount\n" + "".join(f"{n},{n}\n" for n in range(500))), output="x.csv")
    fractions = [fraction for fraction, _ in desk.told if fraction is not None]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] <= 1
    assert len(fractions) > 10


def test_scratch_space_is_given_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table needed on disk goes when the table goes, and at once when it could not be read."""
    scratch = desk.folder / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    path = desk.folder / "p.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    table = _read(Key.of(path, None, Reading()), Pace.of(desk.ctx()))
    assert len(list(scratch.iterdir())) == 1
    del table
    gc.collect()
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ToolFailure):
        _read(Key.of(path, None, Reading()), Pace.of(desk.ctx()))
    assert not list(scratch.iterdir())


HOLD = (
    "import sys, tempfile; tempfile.tempdir = sys.argv[1]; from tools.tabular.scratch import Scratch; s = Scratch(); "
)


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    """The next process removes the scratch of one that was killed, and leaves that of one that lives."""

    def holder() -> subprocess.Popen[str]:
        code = f"{HOLD}print(s.folder, flush=True); sys.stdin.read()"
        return subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    with holder() as killed, holder() as living:
        dead, alive = (Path((one.stdout or sys.stdin).readline().strip()) for one in (killed, living))
        killed.kill()
        killed.wait()
        assert dead.is_dir()
        sweep = [sys.executable, "-c", f"{HOLD}s.close()", str(tmp_path)]
        subprocess.run(sweep, check=True)
        assert list(tmp_path.iterdir()) == [alive]
        living.kill()


async def test_a_plan_of_the_whole_job_runs_through_the_registry(desk: Desk) -> None:
    """Results go from tool to tool as plain JSON, and come out as what the output schema says."""
    tools, ctx, path = Registry.of(tabular), desk.ctx(), desk.declare(ORDERS)

    async def call(name: str, **args: Any) -> Any:
        assert tools[name].check_args(args) == []
        result = await tools[name].invoke(json.loads(json.dumps(args)), ctx)
        jsonschema.validate(result, tools[name].output_schema or {})
        return result

    table = await call("describe_table", path=path)
    fields = await call("check_fields", path=path)
    found = await call("find_anomalies", path=path, output="anomalies.csv")
    figures = await call("aggregate", path=path, group_by=["status"], measures=[{"op": "sum", "column": "amount"}])
    report = await call(
        "render_report", title="Orders", table=table, fields=fields, anomalies=found, aggregates=[figures]
    )
    assert report["summary"] == found["summary"]
    assert sorted(file.name for file in desk.out.iterdir()) == ["anomalies.csv", "report.html", "report.md"]
