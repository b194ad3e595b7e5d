"""Questions about plans and tickets on the command line: shown with what answers them, in words or by a plan."""

from __future__ import annotations

import json

import pytest

from graph.commands.asking import answers, request_text
from plans.decisions import ABOUT_PLAN, ApprovalRequest
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run
from tests.nodes.model_server import ScriptedModel

KIT = ("--toolkit", "mykit:kit")
BAD = json.dumps(plan(step("s1", "dubble", args={"number": 4})))
GOOD = plan(step("s1", "double", args={"number": 4}), answer="it is ${s1.number}")


@pytest.fixture
def unplanned(surestep: Run, endpoint: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on thread `t` whose goal the model cannot plan."""
    monkeypatch.setenv("SURESTEP_MODEL", "scripted")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-1")
    endpoint.answers(BAD)
    ended = surestep("run", "what is twice four?", *KIT, "--thread", "t")
    assert ended.code == 3
    for words in ("@plan: nothing could plan this", "UNKNOWN_TOOL", "surestep approve t @plan --answer TEXT", "paused"):
        assert words in ended.out, ended.out
    return surestep


def test_a_question_is_answered_in_words(unplanned: Run, endpoint: ScriptedModel) -> None:
    """The words reach the planner, and the run goes on to its answer."""
    endpoint.answers(json.dumps(GOOD))
    ended = unplanned("approve", "t", ABOUT_PLAN, "--answer", "use double", *KIT)
    assert (ended.code, "recorded: your answer about the plan" in ended.err, "it is 8" in ended.out) == (0, True, True)
    assert "use double" in endpoint.prompt(-1)


def test_a_question_is_answered_by_a_plan_of_one_s_own(project: Project, unplanned: Run) -> None:
    """A faulty file changes nothing and names its faults; a good one runs."""
    project.write("bad.json", json.loads(BAD))
    unplanned("approve", "t", ABOUT_PLAN, "--plan", "bad.json", *KIT).refuses("UNKNOWN_TOOL")
    unplanned("approve", "t", ABOUT_PLAN, *KIT).refuses("@plan --answer TEXT", "@plan --plan FILE")
    unplanned("approve", "t", ABOUT_PLAN, "--happened", "3", *KIT).refuses("--happened is no answer to what @plan asks")
    unplanned("approve", "t", ABOUT_PLAN, "--plan", "bad.json", "--answer", "x", *KIT).refuses("give one of them")
    project.write("good.json", GOOD)
    ended = unplanned("approve", "t", ABOUT_PLAN, "--plan", "good.json", *KIT, "--json")
    assert (ended.code, ended.json["answer"], ended.json["plan"]["source"]) == (0, "it is 8", "human")


def test_a_rejected_question_ends_with_the_refusal(unplanned: Run) -> None:
    """On stdout, in plain words, with exit code 1."""
    ended = unplanned("reject", "t", ABOUT_PLAN, "--message", "never mind", *KIT)
    assert (ended.code, "I cannot do this because" in ended.out, "never mind" in ended.out) == (1, True, True)


def test_a_ticket_says_what_was_tried_and_how_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure, repairs, finished steps and the three ways on stand in what a person reads; without a model there are
    two of them."""
    monkeypatch.delenv("SURESTEP_MODEL", raising=False)
    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s2", tool="charge", args_sha256="", risk="high",
        reason="ticket T-1: no such account", kind="ticket", created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read from text
        args={"ticket": "T-1", "failure": {"code": "NOT_FOUND"}, "tried": ["1 attempt"], "finished": ["s1 (double)"]},
    )  # fmt: skip
    text = request_text(request)
    for words in ("s2: charge has failed", "T-1", "NOT_FOUND", "1 attempt", "s1 (double)"):
        assert words in text
    ways = ["surestep approve t s2    try once more", "surestep reject t s2    end the run"]
    assert answers(request, ()) == ways
    monkeypatch.setenv("SURESTEP_MODEL", "any")
    assert answers(request, ()) == [
        "surestep approve t s2    try once more",
        "surestep approve t s2 --answer TEXT    say what to do instead",
        "surestep reject t s2    end the run",
    ]
