"""Every value of every command is tried with text that is meant for something else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Ended, Project, Run
from tests.probes.commands import Place, places
from tests.probes.strings import HOSTILE, OF_THE_MACHINE, WORST
from tests.probes.witness import rows_of, watched

CANARY = "what only its owner reads"
THEIRS = "what is theirs"
"""An argument of somebody else's run, which no name that is not exactly its own may show."""
OF_A_THREAD = ("thread", "--thread", "run", "what", "--erase")
KEY = "a key that only the server and its admin know"


@pytest.fixture
def beside(project: Project, surestep: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, where somebody else's run waits for its approval and a run of one's own does, too."""
    monkeypatch.setenv("SURESTEP_TOOLKITS", "mykit:kit")
    monkeypatch.setenv("SURESTEP_AUTH_KEY", KEY)
    monkeypatch.setenv("SURESTEP_AUTH_AUDIENCE", "surestep")
    project.write("good.json", plan(step("s1", "double", args={"number": 4})))
    project.write("asks.json", plan(step("s1", "send", args={"to": "a", "text": "b"}, require_approval=True)))
    project.write("../canary", CANARY)
    (project.folder / "link").symlink_to(project.folder.parent / "canary")
    project.write("theirs.json", plan(step("s1", "send", args={"to": "a", "text": THEIRS}, require_approval=True)))
    assert surestep("run", "--plan", "theirs.json", "--thread", "theirs").code == 3
    assert surestep("run", "--plan", "asks.json", "--thread", "mine").code == 3
    assert THEIRS in surestep("approvals", "theirs").out
    return surestep


def tried(place: Place, words: list[str], surestep: Run) -> str | None:
    """What is wrong with how the command ended; None where it ended well, or with a sentence."""
    try:
        ended: Ended = surestep(*words)
    except BaseException as error:  # noqa: BLE001  # a bug's traceback: what is looked for here
        return f"{words[:6]!r:.300}: {type(error).__name__}: {error!s:.300}"
    said = ended.out + ended.err
    if ended.code not in range(7) or "Traceback" in said:
        return f"{words!r:.300} ended with {ended.code}: {said:.300}"
    if (CANARY in said and not place.is_file) or (THEIRS in said and place.name in OF_A_THREAD):
        return f"{words!r:.300} shows what it should not: {said:.300}"
    return None


def sweep(lines: list[tuple[Place, list[str]]], project: Project, surestep: Run, database_url: str) -> list[str]:
    """All that was wrong, with the command lines and with what they have left behind."""
    before, canary = rows_of(database_url, "theirs"), project.folder.parent / "canary"
    wrong = []
    for place, words in lines:
        with watched() as witness:
            wrong.append(tried(place, words, surestep))
        allowed = [project.folder.parent if place.is_file else project.folder, Path("/dev/null")]
        outside = {path for path in witness.outside(*allowed) if "__pycache__" not in path.parts}
        wrong.append(f"{words!r:.300} wrote {sorted(map(str, outside))}" if outside else None)
        if not place.is_file:
            wrong.append(f"{words!r:.300} opened the canary" if canary in witness.read | witness.written else None)
        wrong.append(f"{words!r:.300} reached {witness.reached}" if witness.reached else None)
    after = rows_of(database_url, "theirs")
    wrong += [f"{name} is not as it was" for name in before if before[name] != after[name]]
    return [each for each in wrong if each]


def test_no_command_takes_a_text_for_more_than_a_text(beside: Run, project: Project, database_url: str) -> None:
    """Of every command one place, with another kind of text for each: no traceback, and nothing else is touched."""
    of_each = {place.command: place for place in sorted(places(), key=lambda place: len(place.name))}
    lines = [
        (place, next(iter(place.words(WORST[number % len(WORST)])))) for number, place in enumerate(of_each.values())
    ]
    assert len(lines) > 30
    assert sweep(lines, project, beside, database_url) == []


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(8))
def test_no_value_of_any_command_is_anything_but_a_value(
    part: int, beside: Run, project: Project, database_url: str
) -> None:
    """Whatever stands in any place: no traceback, no statement, no file and no host but what the command is for."""
    lines = [
        (place, words)
        for place in places()
        for value in HOSTILE
        if not (place.is_file and value in OF_THE_MACHINE)
        for words in place.words(value)
    ]
    assert sweep(lines[part::8], project, beside, database_url) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_no_probe_names_a_file_of_the_machine(text: str, tmp_path: Path) -> None:
    """The probes go to commands that write where they are told to: what they name is below the test, or nowhere."""
    for named in (text, text.removeprefix("file://")):
        path = Path(os.path.normpath(tmp_path / "project" / named.replace("\0", "").replace("\ud800", "")))
        assert path.is_relative_to(tmp_path) or not path.parent.exists()


def test_the_witness_sees(tmp_path: Path) -> None:
    """What the probes rest on: reading, writing, deleting and reaching are seen, also by way of a link."""
    (tmp_path / "canary").write_text(CANARY)
    (tmp_path / "link").symlink_to(tmp_path / "canary")
    with watched() as witness:
        (tmp_path / "link").read_text()
        (tmp_path / "made").write_text("x")
        (tmp_path / "made").unlink()
        with socket.socket() as probe, pytest.raises(OSError, match=r"\w"):
            probe.connect(("127.0.0.1", 1))
    assert (tmp_path / "canary").resolve() in witness.read
    assert witness.outside(tmp_path / "elsewhere") == {(tmp_path / "made").resolve()}
    assert len(witness.reached) == 1
