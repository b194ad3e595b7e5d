"""Looking at what there is: runs, one run with its children, tools, templates, and whether all is well."""

from __future__ import annotations

import pytest
import yaml

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = ("--toolkit", "mykit:kit")
FANNED = plan(
    step("s1", "double", args={"number": 4}, title="Twice four"),
    step("each", "double", args={"number": "${item}"}, for_each="${inputs.numbers}", title="Twice each"),
    answer="done",
)


@pytest.fixture
def ran(project: Project, surestep: Run) -> Run:
    """A finished run on thread `t` with a step that became three children."""
    project.write("p.json", FANNED)
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t", "--input", "numbers=[1,2,3]").code == 0
    return surestep


def test_runs_lists_the_newest_first(ran: Run) -> None:
    """Thread, status, when, and the goal in one line; as JSON with all of it."""
    ran("run", "--plan", "p.json", *KIT, "--thread", "u", "--input", "numbers=[1]")
    lines = ran("runs").out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["u", "done"], ["t", "done"]]
    assert lines[1].endswith("a test")
    found = ran("runs", "--json", "--limit", "1").json["runs"]
    assert [run["thread_id"] for run in found] == ["u"]
    assert set(found[0]) == {"run_id", "thread_id", "status", "goal", "created_at", "ended_at"}


def test_no_run_yet_is_said(surestep: Run) -> None:
    """An empty database is no error."""
    assert (surestep("runs").out, surestep("runs", "--json").json) == ("no run yet\n", {"runs": []})


def test_show_has_a_row_for_every_step_and_child(ran: Run) -> None:
    """Children stand under their step, with attempts and time of their own."""
    shown = ran("show", "t")
    rows = [line.split() for line in shown.out.splitlines()]
    assert [row[:4] for row in rows if row and row[0].startswith(("s1", "each"))] == [
        ["s1", "double", "done", "1"],
        ["each", "double", "done", "3"],
        ["each[0]", "double", "done", "1"],
        ["each[1]", "double", "done", "1"],
        ["each[2]", "double", "done", "1"],
    ]
    assert "Twice each" in shown.out
    assert "done · 2 steps · 4 calls" in shown.out


@pytest.mark.parametrize(
    ("unit", "result"),
    [("s1", '{"number":8}'), ("each[1]", '{"number":4}'), ("each", '[{"number":2},{"number":4},{"number":6}]')],
)
def test_show_output_prints_the_stored_bytes(unit: str, result: str, ran: Run) -> None:
    """A step's, a child's, and the list of the children's results."""
    assert ran("show", "t", "--output", unit).out == f"{result}\n"


def test_show_output_of_nothing_names_what_there_is(ran: Run) -> None:
    """A step without a result is refused with those that have one."""
    ran("show", "t", "--output", "nope").refuses("step 'nope' has no stored result", "s1, each, each[0]")


def test_tools_lists_and_shows(surestep: Run) -> None:
    """The built-in ones and the user's; one in full as YAML; options stand before or after the word."""
    assert "find_anomalies" in surestep("tools").out
    assert "slow_send" in surestep("tools", *KIT, "list").out
    listed = surestep("tools", "--json", *KIT).json["tools"]
    assert {"send": "irreversible", "double": "read"}.items() <= {
        each["name"]: each["effect"] for each in listed
    }.items()
    shown = yaml.safe_load(surestep("tools", "show", "double", *KIT).out)
    assert (shown["toolkit"], shown["arguments"]["required"]) == ("kit", ["number"])
    assert surestep("tools", "--json", *KIT, "show", "double").json["name"] == "double"
    surestep("tools", "show", "find_anomalis").refuses("did you mean find_anomalies?")


def test_templates_have_goals_that_they_serve(surestep: Run) -> None:
    """In English and Chinese, for people and as JSON."""
    assert "find anomalous orders" in surestep("templates").out
    titles = {
        each["name"]: each["title"] for each in surestep("templates", "--language", "zh", "--json").json["templates"]
    }
    assert not titles["anomalous_orders"].isascii()


def test_doctor_finds_all_well(surestep: Run) -> None:
    """Database, storage, output, toolkits and templates; a model is not needed."""
    ended = surestep("doctor", "--json")
    marks = {each["check"]: each["mark"] for each in ended.json["findings"]}
    assert (ended.code, marks.pop("model"), marks.pop("messages"), set(marks.values())) == (0, "note", "note", {"well"})
    assert set(marks) == {
        "settings", "who", "database", "runs", "large results", "archive", "output folder", "toolkits", "tools",
        "templates", "policy",
    }  # fmt: skip
    assert "✓ database: PostgreSQL" in surestep("doctor").out


def test_doctor_says_what_is_wrong_and_goes_on(
    surestep: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check stands alone: what is ill, why, and what would mend it; exit 2."""
    project.write("file", "")
    monkeypatch.setenv("SURESTEP_DATABASE_URL", "postgresql://ann:topsecret@127.0.0.1:1/shop")
    monkeypatch.setenv("SURESTEP_OUTPUT", "file/out")
    monkeypatch.setenv("SURESTEP_ARTIFACTS_URL", "file/results")
    monkeypatch.setenv("SURESTEP_ARCHIVE_URL", "file/archive")
    monkeypatch.setenv("SURESTEP_TOOLKITS", "nokit:kit")
    monkeypatch.setenv("SURESTEP_TEMPLATES", "notemplates")
    monkeypatch.setenv("SURESTEP_MODEL", "m")
    monkeypatch.setenv("SURESTEP_MODLE", "m")
    ended = surestep("doctor")
    assert (ended.code, ended.out.count("✗"), "topsecret" in ended.out) == (2, 7, False), ended.out
    for words in (
        "nothing listens",
        "SURESTEP_OUTPUT",
        "SURESTEP_ARTIFACTS_URL",
        "SURESTEP_ARCHIVE_URL",
        "nokit",
        "OPENAI_API_KEY",
    ):
        assert words in ended.out, ended.out
    assert "SURESTEP_MODLE says nothing, did you mean SURESTEP_MODEL?" in ended.out
