"""What a person decides on the command line: listing, allowing, forbidding, once and with a trace."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

import graph.agent
from graph.commands.asking import request_text
from graph.commands.exactly import LONGEST_VALUE
from plans.decisions import ApprovalRequest, Approve, Vote
from plans.principals import Principal
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = ("--toolkit", "mykit:kit")
TWO = plan(
    step("s1", "send", args={"to": "ann", "text": "hi"}, require_approval=True),
    step("s2", "send", args={"to": "bob", "text": "hi"}, require_approval=True),
    step("s3", "double", args={"number": 4}),
)


@pytest.fixture
def paused(project: Project, surestep: Run) -> Run:
    """A run on thread `t` that waits for two decisions."""
    project.write("p.json", TWO)
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t").code == 3
    return surestep


def test_a_paused_run_says_what_it_asks_and_how_to_answer(project: Project, surestep: Run) -> None:
    """Tool, arguments and reason stand on stdout, with the command that answers, toolkits included."""
    project.write("p.json", TWO)
    ended = surestep("run", "--plan", "p.json", *KIT, "--thread", "ann's")
    assert ended.code == 3
    for word in ("s1: send", "why", "to    ann", "paused", "surestep approve 'ann'\"'\"'s' s1 --toolkit mykit:kit"):
        assert word in ended.out, ended.out
    assert project.calls() == ["double 4"]


def test_approvals_lists_all_that_waits(paused: Run) -> None:
    """For a person with the commands, and as JSON; by thread or in all."""
    listed = paused("approvals", *KIT)
    assert (listed.code, listed.out.count("surestep approve t s")) == (0, 2)
    waiting = paused("approvals", "t", *KIT, "--json").json["approvals"]
    assert sorted(each["step_id"] for each in waiting) == ["s1", "s2"]
    assert paused("approvals", "elsewhere", *KIT, "--json").json == {"approvals": []}
    assert "nothing waits" in paused("approvals", "elsewhere", *KIT).out


def test_approve_and_reject_decide_one_step_and_go_on(project: Project, paused: Run) -> None:
    """The first decision leaves the run paused for the second; both are recorded with who made them."""
    after = paused("approve", "t", "s1", *KIT)
    assert (after.code, "recorded: approve send of step s1" in after.err) == (3, True)
    assert project.calls() == ["double 4", "send ann"]
    ended = paused("reject", "t", "s2", "--message", "not to Bob", *KIT, "--json")
    assert (ended.code, ended.json["status"]) == (1, "failed")
    assert ended.json["steps"][1]["failure"]["code"] == "REJECTED"
    assert "not to Bob" in ended.json["answer"]
    assert project.calls() == ["double 4", "send ann"]


def test_a_decision_opens_one_agent(paused: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding and going on use the same database pool and journal."""
    opened: list[object] = []
    real = graph.agent.open_agent

    def counted(*arguments: object, **more: object) -> object:
        opened.append(arguments)
        return real(*arguments, **more)  # type: ignore[arg-type]  # handed on as they are

    monkeypatch.setattr(graph.agent, "open_agent", counted)
    paused("approve", "t", "s1", *KIT)
    assert len(opened) == 1


def test_a_decision_about_nothing_is_refused(project: Project, paused: Run) -> None:
    """A step that does not wait, and a second decision; nothing runs."""
    paused("approve", "t", "s3", *KIT).refuses("step 's3' of t waits for nobody; steps that wait: s1, s2")
    paused("approve", "t", "s1", *KIT)
    paused("approve", "t", "s1", *KIT).refuses("already approved by", "that decision holds")
    paused("edit", "t", "s1", "--arg", "to=eve", *KIT).refuses("already approved by", "that decision holds")
    assert project.calls() == ["double 4", "send ann"]


def test_a_run_with_several_questions_says_where_all_of_them_are(paused: Run) -> None:
    """The advice answers the first one, and names the command that lists the others."""
    ended = paused("resume", "t", *KIT)
    assert "surestep approvals t" in ended.out
    assert "lists all 2" in ended.out


def test_resume_without_a_decision_runs_nothing_and_still_waits(project: Project, paused: Run) -> None:
    """Going on is no yes."""
    assert paused("resume", "t", *KIT).code == 3
    assert project.calls() == ["double 4"]


@pytest.mark.parametrize(("mode", "code", "sent"), [("all", 0, ["send ann", "send bob"]), ("none", 1, [])])
def test_approve_mode_decides_for_all(mode: str, code: int, sent: list[str], project: Project, paused: Run) -> None:
    """`--approve all` and `none` answer what waits already, and what comes."""
    assert paused("resume", "t", *KIT, "--approve", mode).code == code
    assert sorted(project.calls()) == ["double 4", *sent]


def test_a_request_is_shown_in_full_and_harmlessly() -> None:
    """Every argument with its value, nothing that acts on a terminal, and a long one with its length."""
    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s1", tool="send", args_sha256="", risk="high",
        reason="it cannot\nbe taken back", created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read from text
        args={"to": "ann", "body": "one\ntwo", "long": "x" * 9_000, "n": [1, {"a": None}], "empty": ""},
    )  # fmt: skip
    text = request_text(request)
    assert text.splitlines()[:5] == [
        "s1: send, risk high",
        "  why    it cannot be taken back",
        "  to     ann",
        "  body   one",
        "         | two",
    ]
    assert f"{'x' * LONGEST_VALUE} … (9,000 characters" in text
    assert '[1, {"a": null}]' in text
    assert '  empty  ""' in text


NOT_RESUMED = (
    "t was decided and not resumed: surestep resume t; `surestep sweep` goes on with all of them that were not stopped "
    "by somebody"
)


def test_doctor_names_runs_with_which_nobody_goes_on(project: Project, paused: Run) -> None:
    """One that was decided where no command went on with it, and one whose worker is gone; each with what to type.
    Asked and not answered, a run is not left behind."""
    said = {each["check"]: each for each in paused("doctor", *KIT, "--json").json["findings"]}["runs"]
    assert (said["mark"], said["message"]) == ("well", "none is left behind")
    with psycopg.connect(project.environment["SURESTEP_DATABASE_URL"]) as connection:
        connection.execute("UPDATE surestep.approvals SET status = 'approved' WHERE step_id = 's1'")
    said = {each["check"]: each for each in paused("doctor", *KIT, "--json").json["findings"]}["runs"]
    assert (said["mark"], said["message"]) == ("note", NOT_RESUMED)
    with psycopg.connect(project.environment["SURESTEP_DATABASE_URL"]) as connection:
        connection.execute("UPDATE surestep.runs SET status = 'running'")
    assert "t was stopped on its way: surestep resume t" in paused("doctor", *KIT).out


def test_a_request_says_who_may_answer_it_and_who_has() -> None:
    """Roles, number, rule and escalation; and who has agreed."""
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    request = ApprovalRequest(
        approval_id="x", run_id="r", thread_id="t", step_id="s1", tool="send", args={"to": "eve"}, args_sha256="h",
        risk="high", reason="rule", created_at=at, expires_at=at, approvers=("lead", "boss"), needed=2, rule="m",
        escalates_at=at, escalates_to=("owner",),
    )  # fmt: skip
    vote = Vote(by=Principal(name="ann"), decision=Approve(), via="library", at=at)
    assert request_text(request, [vote]).splitlines()[2:-1] == [
        "  to   eve",
        "  asked: 1 more person with the role lead or boss; from 2026-01-02 03:04:00 UTC on owner too; by the rule 'm'",
        "  agreed: ann (1 of 2)",
    ]
    assert "asked: 2 people with the role lead or boss; from" in request_text(request)
    assert request_text(request).endswith("nobody answered by 2026-01-02 03:04:00 UTC, which counts as a no")
    later = request.model_copy(update={"expires_at": at.replace(year=2999)})
    assert request_text(later).endswith("  no answer by 2999-01-02 03:04:00 UTC counts as a no")
