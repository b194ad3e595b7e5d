"""Plans that people look at, on the command line: written to a file, edited, shown before they run, compared."""

from __future__ import annotations

import json
import stat

import pytest
import yaml

from graph.commands.asking import answers, request_text
from plans.decisions import ABOUT_PLAN, ApprovalRequest
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run
from tests.nodes.model_server import ScriptedModel

KIT = ("--toolkit", "mykit:kit")
GOAL = "what is twice four?"
PLAN = plan(step("s1", "double", args={"number": 4}), answer="it is ${s1.number}")


@pytest.fixture
def planned(surestep: Run, endpoint: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line with a model that plans to double four."""
    monkeypatch.setenv("SURESTEP_MODEL", "scripted")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-1")
    endpoint.answers(json.dumps(PLAN))
    return surestep


def test_a_plan_is_written_edited_and_run(project: Project, planned: Run, endpoint: ScriptedModel) -> None:
    """What `plan` prints is a file that `run --plan` takes as it is, or changed by hand; no model is asked again."""
    written = planned("plan", GOAL, *KIT)
    project.write("plan.yaml", written.out)
    assert planned("run", "--plan", "plan.yaml", *KIT, "--json").json["answer"] == "it is 8"
    project.write("plan.yaml", written.out.replace("number: 4", "number: 21"))
    ended = planned("run", "--plan", "plan.yaml", *KIT, "--json")
    assert (ended.json["answer"], ended.json["plan"]["source"], len(endpoint.questions)) == ("it is 42", "file", 1)


def test_review_shows_the_whole_plan_and_how_it_is_answered(planned: Run) -> None:
    """The plan stands there as YAML; the run ends with 3; each way on is a command that can be pasted."""
    ended = planned("run", GOAL, *KIT, "--thread", "t", "--review")
    assert ended.code == 3
    for words in (f"{ABOUT_PLAN}: a plan to look at", "number: 4", f"surestep approve t {ABOUT_PLAN}",
                  f"surestep edit t {ABOUT_PLAN} --plan FILE", f"surestep reject t {ABOUT_PLAN}"):  # fmt: skip
        assert words in ended.out, ended.out
    done = planned("approve", "t", ABOUT_PLAN, *KIT)
    assert (done.code, "recorded: approve the plan" in done.err, "it is 8" in done.out) == (0, True, True)


def test_a_shown_plan_is_edited_by_a_file_and_the_difference_is_told(project: Project, planned: Run) -> None:
    """The edit runs; `show` and `--json` say what it has changed, field by field."""
    assert planned("run", GOAL, *KIT, "--thread", "t", "--review").code == 3
    project.write("mine.yaml", yaml.safe_dump(plan(step("s1", "double", args={"number": 21}), answer="${s1.number}")))
    ended = planned("edit", "t", ABOUT_PLAN, "--plan", "mine.yaml", *KIT)
    assert (ended.code, "recorded: your change of the plan" in ended.err) == (0, True)
    line = "~ s1  args.number: 4 → 21"
    assert line in ended.err
    assert line in planned("show", "t").out
    [revision] = planned("show", "t", "--json").json["revisions"]
    assert (revision["revision"], revision["source"]) == (2, "human")
    assert revision["changes"][0]["fields"] == {"args": [{"number": 4}, {"number": 21}]}


def test_a_step_s_arguments_are_edited_one_or_all(project: Project, surestep: Run) -> None:
    """One by name, the others staying; nothing, two ways at once or a plan for a step are told what is right."""
    project.write("plan.json", plan(step("s1", "double", args={"number": 4}, require_approval=True), answer="${s1}"))
    for thread, given in (("t", ("--arg", "number=5")), ("u", ("--args", '{"number": 6}'))):
        waiting = surestep("run", "--plan", "plan.json", *KIT, "--thread", thread)
        assert (waiting.code, f"surestep edit {thread} s1 --args JSON" in waiting.out) == (3, True)
        surestep("edit", thread, "s1", *KIT).refuses("--plan FILE")
        surestep("edit", thread, "s1", "--plan", "plan.json", *KIT).refuses("--plan is for @plan")
        surestep("edit", thread, "s1", "--args", "[1]", *KIT).refuses("no object")
        surestep("edit", thread, "s9", "--arg", "number=5", *KIT).refuses("waits for nobody")
        ended = surestep("edit", thread, "s1", *given, *KIT, "--json")
        assert (ended.code, ended.json["answer"]) == (0, '{"number": 10}' if thread == "t" else '{"number": 12}')


def test_who_asks_nobody_has_no_plan_looked_at(surestep: Run, project: Project) -> None:
    """The two options contradict each other, and nothing is begun."""
    project.write("plan.json", PLAN)
    surestep("run", "--plan", "plan.json", *KIT, "--review", "--approve", "none").refuses("asks nobody")


def test_in_an_editor_a_person_changes_what_is_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the editor leaves is the decision; what it leaves as it was decides nothing, nor does an editor that is not
    there."""
    import asyncio

    from graph.commands.editing import edited

    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s2", tool="double", args={"number": 4}, args_sha256="",
        risk="high", reason="of high risk", created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read from text
    )  # fmt: skip
    script = project.folder / "editor"
    script.write_text('#!/bin/sh\nsed -i "s/4/7/" "$1"\n', "utf-8")
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    for editor, args in ((str(script), {"number": 7}), ("true", None), ("/no/such/editor", None)):
        monkeypatch.setenv("VISUAL", editor)
        changed = asyncio.run(edited(request))
        assert (changed and changed.args) == args


def test_a_review_at_a_terminal_says_what_each_answer_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word that may be answered has its command, in the order in which they are offered."""
    monkeypatch.setenv("SURESTEP_MODEL", "any")
    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id=ABOUT_PLAN, tool="plan", args=PLAN, args_sha256="",
        risk="low", reason="a person looks at it", kind="review", created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read from text
    )  # fmt: skip
    assert "steps:\n  - id: s1" in request_text(request)
    assert [line.partition("    ")[2] for line in answers(request, ())] == [
        "run it as it is", "change it", "say what to do instead", "end the run",
    ]  # fmt: skip


def test_a_question_to_the_user_is_answered_on_the_command_line(project: Project, surestep: Run) -> None:
    """It stands there with its choices; a wrong answer is told what is right, and what is meant for others refused."""
    asks = {"question": "Which number?", "kind": "choice", "choices": ["four", "five"]}
    project.write("plan.json", plan(step("s1", "ask_user", args=asks), answer="you said ${s1.answer}"))
    waiting = surestep("run", "--plan", "plan.json", *KIT, "--thread", "t")
    for words in ("s1: a question to you", '["four", "five"]', "surestep approve t s1 --answer TEXT", "paused"):
        assert words in waiting.out, waiting.out
    surestep("approve", "t", "s1", "--answer", "six", *KIT).refuses("answered by one of: four, five")
    surestep("approve", "t", "s1", "--happened", "four", *KIT).refuses("--happened is no answer")
    surestep("approve", "t", "s1", *KIT).refuses("--answer TEXT")
    done = surestep("approve", "t", "s1", "--answer", "Five", *KIT)
    assert (done.code, "you said five" in done.out) == (0, True)
