"""`show THREAD --plans`: every draft of a run's plans, by whom, with what was wrong, what it cost and what it said."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from checkpoints.jsonb import jsonb
from graph.commands.drafts import NAMES
from nodes.planner import PLANNER
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run
from tests.nodes.model_server import ScriptedModel, completion, refused

KIT = ("--toolkit", "mykit:kit")
BAD = plan(step("s1", "dubble", args={"number": 4}))
GOOD = plan(step("s1", "double", args={"number": 4}), answer="${s1.number}")


@pytest.fixture
def planned(project: Project, surestep: Run, endpoint: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on thread `t` whose plan took three tries: prose, an unknown tool, then a plan in a fence."""
    for name, value in (("SURESTEP_MODEL", "m-1"), ("OPENAI_BASE_URL", endpoint.base_url), ("OPENAI_API_KEY", "k")):
        monkeypatch.setenv(name, value)
    fenced = f"Here it is:\n```json\n{json.dumps(GOOD)}\n```"
    endpoint.answers("I would rather not say.", json.dumps(BAD), completion(fenced, prompt_tokens=100))
    ended = surestep("run", "twice four?", *KIT, "--thread", "t", "--json")
    assert (ended.code, ended.json["answer"]) == (0, "8")
    return surestep


def test_each_draft_has_its_author_its_tries_and_its_faults(planned: Run) -> None:
    """As JSON, refused ones too: model, mode, prompt, tokens, and where its text is."""
    drafts: list[dict[str, Any]] = planned("show", "t", "--plans", "--json").json["drafts"]
    told = [(each["valid"], each["attempt"], [fault["code"] for fault in each["faults"]]) for each in drafts]
    assert told == [(False, 1, ["PLAN_SYNTAX"]), (False, 2, ["UNKNOWN_TOOL"]), (True, 3, [])]
    assert {
        (each["source"], each["model"], each["mode"], each["prompt_sha256"], each["revision"]) for each in drafts
    } == {("model", "scripted-1", "json_schema", PLANNER.sha256, 1)}
    assert [each["prompt_tokens"] for each in drafts] == [11, 11, 100]
    assert [each["repaired"] for each in drafts] == [False, False, True]
    assert drafts[1]["faults"][0]["step"] == "s1"


def test_it_is_a_table_for_people(planned: Run) -> None:
    """One line per draft; the revision that was used says so."""
    lines = planned("show", "t", "--plans").out.splitlines()
    assert lines[0].split() == [name for name in NAMES if name]
    assert [line.split()[:3] for line in lines[1:]] == [["1", "refused", "model"], ["2", "refused", "model"],
                                                       ["3", "revision", "1"]]  # fmt: skip
    assert "UNKNOWN_TOOL in s1" in lines[2]
    assert f"scripted-1  json_schema  {PLANNER.sha256[:8]}" in lines[3]
    assert "its syntax was repaired" in lines[3]


def test_the_text_of_a_draft_can_be_had(planned: Run) -> None:
    """As the model wrote it, by its number in the list; another number is refused with those there are."""
    assert planned("show", "t", "--plans", "--raw", "1").out.strip() == "I would rather not say."
    assert json.loads(planned("show", "t", "--plans", "--raw", "2").out) == BAD
    planned("show", "t", "--plans", "--raw", "7").refuses("draft '7'", "1, 2, 3")
    planned("show", "t", "--plans", "--output", "s1").refuses("give one of them")


def test_a_planner_that_gave_no_answer_is_told_with_how_it_failed(
    project: Project, surestep: Run, endpoint: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way it failed, and the raw text of the error."""
    for name, value in (("SURESTEP_MODEL", "m-1"), ("OPENAI_BASE_URL", endpoint.base_url), ("OPENAI_API_KEY", "k")):
        monkeypatch.setenv(name, value)
    endpoint.answers(refused(404, "no m-1 here"))
    surestep("run", "twice four?", *KIT, "--thread", "t")
    [draft] = surestep("show", "t", "--plans", "--json").json["drafts"]
    assert (draft["model"], draft["failed"], draft["valid"]) == ("m-1", "ModelUnknown", False)
    assert "no m-1 here" in surestep("show", "t", "--plans", "--raw", "1").out


def test_a_plan_that_was_given_has_no_model(project: Project, surestep: Run) -> None:
    """Its author is the file, and there is no text of a model's."""
    project.write("p.json", GOOD)
    surestep("run", "--plan", "p.json", *KIT, "--thread", "t")
    [draft] = surestep("show", "t", "--plans", "--json").json["drafts"]
    assert (draft["source"], draft["model"], draft["valid"], draft["revision"]) == ("file", None, True, 1)
    surestep("show", "t", "--plans", "--raw", "1").refuses("no model has written a plan of this run")


def test_doctor_says_that_a_worker_is_of_an_older_release(project: Project, surestep: Run, database_url: str) -> None:
    """Where plans were read in an older version than they were written in; where none was, there is nothing to say."""
    project.write("p.json", GOOD)
    surestep("run", "--plan", "p.json", *KIT, "--thread", "t")
    assert "plan versions" not in surestep("doctor", *KIT).out
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO surestep.journal (run_id, fence, n, kind, body) SELECT run_id, 9, n, 'older_form', %s"
            " FROM surestep.runs, generate_series(1, 2) n",
            (jsonb({"written": 2, "read": 1}),),
        )
    told = surestep("doctor", *KIT).out
    assert "plans of 1 run were read in version 1 though written in version 2" in told
    assert "a worker is of an older release" in told
