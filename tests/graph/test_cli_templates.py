"""`surestep templates`: learned from a run, put into the folder, used, counted, set aside and restored."""

from __future__ import annotations

import psycopg
import pytest

from tests.graph.program import Project, Run

PLAN = """
goal: any
steps:
  - {id: s1, tool: double, args: {number: 21}, reason: it is asked for}
answer: "twice 21 is ${s1.number}"
"""
KIT = ("--toolkit", "mykit:kit")


@pytest.fixture
def a_run(surestep: Run, project: Project) -> str:
    """The thread of a clean run of a plan of our own."""
    project.write("plan.yaml", PLAN)
    assert surestep("run", "Calculate the double of 21", "--plan", "plan.yaml", "--thread", "first", *KIT).code == 0
    return "first"


def test_a_template_is_learned_reviewed_used_and_restored(
    surestep: Run, project: Project, monkeypatch: pytest.MonkeyPatch, a_run: str
) -> None:
    """Printed first; used when a person has put it into the folder; shown with how it serves and why it does not."""
    printed = surestep("templates", "learn", a_run, "--name", "double_of", *KIT)
    assert "double of (?P<number>" in printed.out
    assert "Review it" in printed.err
    written = surestep("templates", "learn", a_run, "--to", "mine", "--name", "double_of", *KIT)
    assert written.out.strip().endswith("mine/double_of.yaml")
    surestep("templates", "learn", a_run, "--to", "mine/double_of.yaml", *KIT).refuses("is there already")
    monkeypatch.setenv("SURESTEP_TEMPLATES", "mine")
    used = surestep("run", "please calculate the double of 5", "--thread", "second", "--json", *KIT).json
    assert (used["answer"], used["plan"]["template"]["parameters"]) == ("twice 5 is 10", {"number": 5})
    assert "from the template double_of" in surestep("show", "second").out
    listed = surestep("templates")
    assert "used in 1 run, 100% of those that tell succeeded" in listed.out
    with psycopg.connect(project.environment["SURESTEP_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            "UPDATE surestep.template_standing SET set_aside_at = now(), recent = '{f,f,t,f,f}', last_failure = 'OUCH'"
        )
    aside = surestep("templates").out
    assert "because 1 of its last 5 runs succeeded; the last failure: OUCH" in " ".join(aside.split())
    assert "set aside because they have failed: double_of" in " ".join(surestep("doctor").out.split())
    [now] = [each["now"] for each in surestep("templates", "--json").json["templates"] if each["name"] == "double_of"]
    assert (now["used"], now["success_rate"], now["set_aside_at"] is not None) == (1, 1.0, True)
    assert "matched again" in surestep("templates", "restore", "double_of").out
    surestep("templates", "restore", "double_of").refuses("is not set aside")
    surestep("templates", "restore", "doubel").refuses("there is no template 'doubel'")


def test_what_gives_no_template_is_refused_in_a_sentence(surestep: Run, project: Project, a_run: str) -> None:
    """A run that is not there, one that failed, and a file of another name."""
    surestep("templates", "learn", "nope").refuses("no run was ever started")
    surestep("templates", "learn", a_run, "--to", "x.yaml", "--name", "y", *KIT).refuses(
        "belongs into a file called y.yaml"
    )
    project.write(
        "bad.yaml", PLAN.replace("double, args: {number: 21}", "broken, args: {why: no}").replace("s1.number", "s1")
    )
    surestep("run", "break 21", "--plan", "bad.yaml", "--thread", "bad", *KIT)
    surestep("templates", "learn", "bad", *KIT).refuses("gives no template", "it is not done (failed)", "NOT_FOUND")


def test_looking_makes_no_database(surestep: Run, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, templates are listed all the same, and it is said that nobody has looked."""
    monkeypatch.delenv("SURESTEP_DATABASE_URL")
    listed = surestep("templates")
    assert (listed.code, "late_order" in listed.out) == (0, True)
    assert "was not looked at: no database was made" in listed.err
    assert not (project.folder / ".surestep").exists()
