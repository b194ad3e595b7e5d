"""Tests of the files that a run may touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from plans.failure import ToolFailure
from tools.files import FileScope


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that nobody declared."""
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    return file


@pytest.fixture
def scope(tmp_path: Path) -> FileScope:
    """One declared input and an output folder."""
    source = tmp_path / "in" / "orders.csv"
    source.parent.mkdir()
    source.write_text("a,b\n")
    (tmp_path / "out").mkdir()
    return FileScope({"orders": source}, tmp_path / "out")


def test_a_declared_input_is_readable(scope: FileScope) -> None:
    """An input is read by the path that a reference to it gives."""
    assert scope.readable(str(scope.inputs["orders"])).read_text() == "a,b\n"


def test_what_was_written_is_readable_by_name_and_by_path(scope: FileScope) -> None:
    """A later step reads an earlier one's output."""
    scope.writable("report.md").write_text("done")
    assert scope.readable("report.md").read_text() == "done"
    assert scope.readable(str(scope.output_dir / "report.md")).read_text() == "done"


def test_folders_of_an_output_are_made(scope: FileScope) -> None:
    """A name may have folders in it."""
    scope.writable("charts/2026/june.html").write_text("<p>")
    assert (scope.output_dir / "charts" / "2026" / "june.html").read_text() == "<p>"


@pytest.mark.parametrize("way", ["../secret.txt", "{outside}", "sub/../../secret.txt", "/etc/passwd", ".", "", "a\0b"])
def test_nothing_outside_is_read_or_written(scope: FileScope, outside: Path, way: str) -> None:
    """Neither .. nor an absolute path leads out, and the folder itself is no file."""
    path = way.format(outside=outside)
    with pytest.raises(ToolFailure) as reading:
        scope.readable(path)
    with pytest.raises(ToolFailure) as writing:
        scope.writable(path)
    assert (reading.value.code, writing.value.code) == ("NOT_PERMITTED", "NOT_PERMITTED")


def test_a_link_is_where_it_leads(scope: FileScope, outside: Path) -> None:
    """A symbolic link in the output folder is no way out: not to read, not to write, not even a dangling one."""
    (scope.output_dir / "link").symlink_to(outside)
    (scope.output_dir / "dangling").symlink_to(outside.parent / "new.txt")
    (scope.output_dir / "folder").symlink_to(outside.parent)
    for name in ("link", "dangling", "folder/secret.txt", "folder/new.txt"):
        with pytest.raises(ToolFailure, match="may not be written"):
            scope.writable(name)
        with pytest.raises(ToolFailure, match="may not be read"):
            scope.readable(name)


def test_a_link_to_itself_is_refused_in_words(scope: FileScope) -> None:
    """A loop of links is a failure of the tool, not a crash."""
    (scope.output_dir / "loop").symlink_to(scope.output_dir / "loop")
    with pytest.raises(ToolFailure, match="loop"):
        scope.readable("loop")


def test_a_declared_link_may_be_read(scope: FileScope, outside: Path, tmp_path: Path) -> None:
    """Whoever declares a link as an input has declared the file."""
    link = tmp_path / "link.csv"
    link.symlink_to(outside)
    assert FileScope({"x": link}, scope.output_dir).readable(str(link)).read_text() == "secret"


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    """An input that lies in the output folder is still only an input."""
    source = tmp_path / "orders.csv"
    source.write_text("a")
    with pytest.raises(ToolFailure, match="not overwritten"):
        FileScope({"orders": source}, tmp_path).writable("orders.csv")


def test_missing_files_and_folders_are_told_apart(scope: FileScope) -> None:
    """NOT_FOUND names what may be read; a folder is INVALID_INPUT, and so is a file where a folder should be."""
    with pytest.raises(ToolFailure, match="orders") as missing:
        scope.readable("nothing.csv")
    scope.writable("sub/x").write_text("x")
    with pytest.raises(ToolFailure) as folder:
        scope.readable("sub")
    with pytest.raises(ToolFailure) as over:
        scope.writable("sub")
    with pytest.raises(ToolFailure) as under:
        scope.writable("sub/x/y")
    codes = [error.value.code for error in (missing, folder, over, under)]
    assert codes == ["NOT_FOUND", "INVALID_INPUT", "INVALID_INPUT", "INVALID_INPUT"]
