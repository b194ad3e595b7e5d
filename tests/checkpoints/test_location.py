"""Where the database is: defaults, then the file, then the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoints.location import Location, read_values
from plans.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_with_nothing_said_it_is_the_embedded_server_in_the_working_directory() -> None:
    """No file and no variable: no URL, and the folder `.surestep`."""
    assert Location.read(environment={}) == Location(None, Path(".surestep"))


def test_the_file_wins_over_the_default() -> None:
    """`surestep.toml` in the working directory is read without being named."""
    Path("surestep.toml").write_text('database_url = "postgresql://h/d"\nfolder = "elsewhere"\nmodel = "m"\n')
    assert Location.read(environment={}) == Location("postgresql://h/d", Path("elsewhere"))


def test_the_environment_wins_over_the_file() -> None:
    """One variable replaces one value and leaves the other."""
    Path("surestep.toml").write_text('database_url = "postgresql://h/d"\nfolder = "elsewhere"\n')
    environment = {"SURESTEP_DATABASE_URL": "postgresql://other/d"}
    assert Location.read(environment=environment) == Location("postgresql://other/d", Path("elsewhere"))


def test_an_empty_variable_says_nothing() -> None:
    """`SURESTEP_DATABASE_URL=` in a shell or compose file is not a URL."""
    assert read_values(["database_url"], environment={"SURESTEP_DATABASE_URL": ""}) == {}


def test_a_named_file_that_is_not_there_is_an_error() -> None:
    """Only the default file may be missing."""
    with pytest.raises(ConfigurationError, match=r"mine\.toml does not exist"):
        Location.read(Path("mine.toml"), {})


@pytest.mark.parametrize(("text", "words"), [("folder = ", "cannot be read"), ("folder = 3", "must be text")])
def test_a_file_that_makes_no_sense_is_an_error_with_its_name(text: str, words: str) -> None:
    """The file's name and the trouble stand in the message."""
    Path("surestep.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=words) as caught:
        Location.read(environment={})
    assert "surestep.toml" in str(caught.value)
