"""Tests of a run's inputs: what may be one, and whether a file is still what it was."""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any

import pytest

from nodes.inputs import changed_files, declared_inputs
from plans.errors import InvalidInput


async def test_a_file_is_known_by_its_absolute_path_size_and_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values stay values; a Path becomes what the file is now, also where it was named from the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_bytes(b"a,b\n")
    values, files = await declared_inputs({"orders": Path("orders.csv"), "days": 7, "tags": ["x"]}, None)
    assert values == {"days": 7, "tags": ["x"]}
    assert files["orders"].path == str(tmp_path / "orders.csv")
    assert (files["orders"].size, files["orders"].sha256) == (4, hashlib.sha256(b"a,b\n").hexdigest())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"orders": Path("nothing.csv")}, "no such file; in"),
        ({"orders": Path("no/folder/x.csv")}, "nor a folder"),
        ({"orders": Path()}, "is the folder"),
        ({"9lives": 1}, "cannot name an input"),
        ({"a b": 1}, "cannot name an input"),
        ({"": 1}, "cannot name an input"),
        ({"x": math.nan}, "cannot be stored"),
        ({"x": {"y": "\x00"}}, "cannot be stored"),
        ({"x": {"file": "orders.csv"}}, "SURESTEP_INPUT_ROOT"),
    ],
)
async def test_what_cannot_be_an_input_is_named(
    given: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which input it is, what was found, and what would be right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near.csv").touch()
    with pytest.raises(InvalidInput, match=words):
        await declared_inputs(given, None)


async def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Something that is never read to its end is refused before it is opened."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="no regular file"):
        await declared_inputs({"x": tmp_path / "pipe"}, None)


async def test_a_client_names_files_under_the_root_and_nowhere_else(tmp_path: Path) -> None:
    """Neither `..` nor an absolute path nor a link leads out of the folder that clients may name files in."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "in.csv").write_text("x")
    (tmp_path / "out.csv").write_text("x")
    (root / "link.csv").symlink_to(tmp_path / "out.csv")
    _, files = await declared_inputs({"x": {"file": "in.csv"}}, root)
    assert files["x"].path == str(root / "in.csv")
    for path in ("../out.csv", str(tmp_path / "out.csv"), "link.csv"):
        with pytest.raises(InvalidInput, match="must lie under"):
            await declared_inputs({"x": {"file": path}}, root)


async def test_a_changed_file_is_found_and_one_that_is_only_touched_is_not(tmp_path: Path) -> None:
    """It is the bytes that count; a file that is gone has changed, once."""
    for name in ("same", "other", "gone"):
        (tmp_path / name).write_text(name)
    _, files = await declared_inputs({name: tmp_path / name for name in ("same", "other", "gone")}, None)
    os.utime(tmp_path / "same", (1, 1))
    (tmp_path / "other").write_text("OTHER")
    (tmp_path / "gone").unlink()
    assert await changed_files(files) == ["other", "gone"]
    told = {"gone": files["gone"].model_copy(update={"sha256": "", "size": 0})}
    assert await changed_files(told) == []
    (tmp_path / "gone").write_text("back")
    assert await changed_files(told) == ["gone"]
