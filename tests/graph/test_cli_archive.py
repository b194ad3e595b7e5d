"""`surestep archive` at the command line: what it says, what it ends with, and what it asks before it erases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = ("--toolkit", "mykit:kit")
PLAN = plan(step("s1", "double", args={"number": 4}), answer="${s1.number}")


@pytest.fixture
def ran(project: Project, surestep: Run) -> Run:
    """A finished run on thread `t`, of request `q`."""
    project.write("p.json", PLAN)
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t", "--request-id", "q").code == 0
    return surestep


def test_an_archived_run_is_listed_with_its_place_and_can_be_shown(ran: Run, project: Project) -> None:
    """The table has a row per run; `show` and its `--output` read the archive and say so."""
    assert ran("archive").out == "no run has ended more than 7d ago on a thread that is over\n"
    told = ran("archive", "--older-than", "0s", "--dry-run").out.splitlines()
    assert told[1].split()[:2] == ["t", "done"]
    assert not (project.folder / ".surestep/archive").exists()
    moved = ran("archive", "--older-than", "0s")
    assert moved.code == 0
    location = moved.out.splitlines()[1].split()[-1]
    assert Path(location, "manifest.json").exists()
    assert ran("runs").out == "no run yet\n"
    assert f"archived: {location}" in ran("show", "t").out
    assert ran("show", "t", "--json").json["archived"] == location
    assert ran("show", "t", "--output", "s1").out == '{"number":8}\n'
    again = ran("run", "--plan", "p.json", *KIT, "--request-id", "q", "--json").json
    assert (again["answer"], again["archived"]) == ("8", location)
    assert project.calls() == ["double 4"]


def test_json_has_what_was_archived(ran: Run, project: Project) -> None:
    """One object, with the place that --to has named."""
    told = ran("archive", "--older-than", "0s", "--to", "old runs", "--json").json
    assert told["place"] == str(project.folder / "old runs")
    assert [(run["thread_id"], run["status"]) for run in told["archived"]] == [("t", "done")]
    assert (told["left"], told["dry_run"]) == ([], False)


def test_a_run_that_cannot_be_archived_whole_ends_with_1(project: Project, surestep: Run) -> None:
    """A large result that is gone: the run is named, and stays."""
    project.write("p.json", plan(step("s1", "loud", args={"text": "x" * 20_000})))
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t").code == 0
    shutil.rmtree(project.folder / ".surestep/artifacts")
    ended = surestep("archive", "--older-than", "0s")
    assert ended.code == 1
    assert "left: run" in ended.err
    assert "is gone" in ended.err
    assert surestep("runs", "--json").json["runs"][0]["thread_id"] == "t"


@pytest.mark.parametrize("age", ["7", "7 moons", "", "-1d", "1e99", "nan"])
def test_an_age_that_is_none_is_refused(surestep: Run, age: str) -> None:
    """Exit 2, with ages that would do."""
    surestep("archive", f"--older-than={age}").refuses("such as 90s, 12h, 7d or 2w")


def test_one_thread_is_that_thread_alone(ran: Run) -> None:
    """Others are not trimmed either; a thread that was never there is an error, as it is everywhere."""
    assert ran("run", "--plan", "p.json", *KIT, "--thread", "u").code == 0
    told = ran("archive", "--older-than", "0s", "--thread", "u", "--json").json
    assert ([run["thread_id"] for run in told["archived"]], told["threads_trimmed"]) == (["u"], 0)
    ran("archive", "--older-than", "0s", "--thread", "nope").refuses("no run was ever started on thread 'nope'")


def test_erasing_wants_to_be_meant(ran: Run) -> None:
    """Without --yes and without a terminal nothing is erased; with it everything is, and the thread is unknown."""
    ran("archive", "--erase", "t").refuses("--yes")
    assert ran("show", "t").code == 0
    assert ran("archive", "--erase", "t", "--yes").out == "erased: 1 run of thread t, 0 of them in the archive\n"
    ran("show", "t").refuses("was erased")
    ran("run", "--plan", "p.json", *KIT, "--request-id", "q").refuses("was erased", "choose another request id")
    told = ran("archive", "--erase", "t", "--yes", "--json").json
    assert (told["thread_id"], len(told["runs"])) == ("t", 1)
    ran("archive", "--erase", "never", "--yes").refuses("nothing to erase")
