"""`surestep policy`: judged against the tools there are, and explained call by call."""

from __future__ import annotations

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

RULES = """
[[rules]]
name = "to ann"
tools = "send"
args.to = { one_of = "ann" }
then = "allow"

[[rules]]
name = "elsewhere"
tools = "send"
then = "ask"
approvers = ["lead"]
needed = 2
expires_s = 60
"""
KIT = ("--toolkit", "mykit:kit")


@pytest.fixture
def rules(project: Project, surestep: Run) -> Run:
    """A project with a policy in `policy.toml`."""
    project.write("policy.toml", RULES)
    return surestep


def test_check_shows_what_each_tool_may_come_to(rules: Run) -> None:
    """A table for people, the same as JSON, and what is odd beside it."""
    checked = rules("policy", "check", "--policy", "policy.toml", *KIT)
    assert checked.code == 0
    assert "allow (to ann), ask (elsewhere)" in checked.out
    assert "can be used: 2 rules" in checked.err
    told = rules("policy", "check", "--policy", "policy.toml", *KIT, "--json").json
    assert told["tools"]["send"] == [{"then": "allow", "rule": "to ann"}, {"then": "ask", "rule": "elsewhere"}]
    assert told["tools"]["double"] == [{"then": "silent", "rule": None}]
    assert "every call of them is denied" in told["remarks"][-1]["message"]


def test_explain_says_rule_by_rule_what_a_call_comes_to(rules: Run) -> None:
    """What fits, what does not and why, who is asked; unknown arguments may go either way."""
    explained = rules("policy", "explain", "send", "--arg", "to=bob", "--policy", "policy.toml", *KIT)
    assert explained.code == 0
    for words in (
        "rule 'to ann': does not fit: to is not as it says",
        "rule 'elsewhere': fits",
        "ask by 'elsewhere', risk low",
        "who is asked: 2 of lead, within 60 s",
    ):
        assert words in explained.out, explained.out
    either = rules("policy", "explain", "send", "--unknown", "to", "--policy", "policy.toml", *KIT, "--json").json
    assert [each["fits"] for each in either["judged"]] == [None, True]
    assert (either["ruling"]["then"], either["ruling"]["terms"]["needed"]) == ("ask", 2)


def test_what_cannot_be_judged_is_said_in_a_sentence(rules: Run) -> None:
    """A missing or broken file, and names that nobody has."""
    for words, message in (
        (("check",), "there is no policy"),
        (("check", "--policy", "none.toml"), "cannot be read"),
        (("check", "--policy", "mykit.py"), "is no TOML"),
        (("explain", "sent", "--policy", "policy.toml"), "did you mean send?"),
        (("explain", "send", "--tainted", "to", "--policy", "policy.toml"), "names no argument of this call"),
    ):
        ended = rules("policy", *words, *KIT)
        assert (ended.code, ended.out) == (2, ""), words
        assert message in ended.err


def test_doctor_says_whether_the_policy_can_be_used(project: Project, rules: Run) -> None:
    """Whether there is one, whether something is odd about it, and what is wrong with a broken one."""

    def told() -> tuple[str, str]:
        found = {each["check"]: each for each in rules("doctor", *KIT, "--json").json["findings"]}["policy"]
        return found["mark"], found["message"]

    assert told() == ("well", "there is none: what is of high risk asks anybody")
    project.write("surestep.toml", 'policy = "policy.toml"\n')
    assert told()[0] == "note"
    assert "2 rules" in told()[1]
    project.write("policy.toml", "[[rules]")
    assert told()[0] == "ill"


def test_a_run_on_the_command_line_is_held_to_the_policy(project: Project, rules: Run) -> None:
    """By the setting; `--approve all` is the word of who gives it, and not that of the people whom a rule names."""
    project.write("surestep.toml", 'policy = "policy.toml"\n')
    project.write("p.json", plan(step("s1", "send", args={"to": "ann", "text": "hi"})))
    assert rules("run", "--plan", "p.json", *KIT).code == 0
    project.write("q.json", plan(step("s1", "send", args={"to": "bob", "text": "hi"})))
    paused = rules("run", "--plan", "q.json", *KIT, "--thread", "t", "--approve", "all")
    assert paused.code == 3
    again = rules("resume", "t", *KIT, "--approve", "all")
    assert (again.code, "is decided by lead" in again.err) == (2, True)
    waiting = rules("approvals", "t", *KIT, "--json").json["approvals"]
    assert [(each["rule"], each["approvers"], each["needed"]) for each in waiting] == [("elsewhere", ["lead"], 2)]
    assert project.calls() == ["send ann"]
