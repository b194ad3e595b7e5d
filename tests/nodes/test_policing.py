"""What the policies of a run make of its steps and questions: pure, on folded rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodes.admit import Ask, Refuse, Run, admit
from nodes.fold import RunFold, fold
from nodes.policing import NOBODY, Actor, action_of, asking_terms, denied_steps, may_be_called, on_terms, still_counts
from plans.plan import Source, Step, StepDraft
from plans.policy import Policy, Terms
from plans.policy_rulings import ruling
from plans.provenance import Provenance
from tests.nodes.rows import Row, a_plan, a_step, answered, begun, planned
from tests.nodes.test_admit import TOOLS, facts
from tests.plans.policy_samples import policy
from tools.registry import Registry, Toolkit

SEND = a_step("a", tool="send", args={"to": "ann", "text": "hi"})
REFUND = a_step("a", tool="refund", args={"amount": 5}, risk="high")
ALLOW = {"effects": "write", "then": "allow"}
CLERK = Actor("clerk")
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def under(*rules: Policy) -> list[Row]:
    """The rows by which a run is held to policies."""
    return [("policy", None, 0, {"sha256": each.sha256, "policy": each.stored()}) for each in rules]


def held(step: Step, *policies: Policy, rows: tuple[Row, ...] = (), source: Source = "file") -> RunFold:
    """A run with a one-step plan of this source, held to these policies."""
    plan = a_plan(step).model_copy(update={"source": source})
    return fold([begun(), *under(*policies), planned(plan), *rows])


def admitted(step: Step, *policies: Policy, role: str | None = None, **more: Any) -> Any:
    """What is said to this step."""
    return admit(step, held(step, *policies, **more), facts(step, role=role))


def test_a_rule_that_allows_lets_a_risky_call_run() -> None:
    """Its tool's own risk, and that of the plan, ask nobody where the policy says so."""
    assert isinstance(admitted(REFUND, role="clerk"), Ask)
    assert isinstance(admitted(REFUND, policy(ALLOW), role="clerk"), Run)


@pytest.mark.parametrize("source", ["local_replan", "global_replan"])
def test_no_rule_allows_for_a_step_that_was_written_after_results_were_read(source: Source) -> None:
    """Text that was read may have had a say in it; its risk asks as without a policy."""
    assert isinstance(admitted(REFUND, policy(ALLOW), role="clerk", source=source), Ask)


def test_what_a_plan_asks_for_is_asked_whatever_a_rule_allows() -> None:
    """A rule takes no question back that a plan's author has put in."""
    step = SEND.model_copy(update={"require_approval": True})
    asked = admitted(step, policy(ALLOW, asking={"approvers": ["lead"]}))
    assert isinstance(asked, Ask)
    assert (asked.reason, asked.terms.approvers, asked.rule) == (
        "the plan asks for a person's approval",
        ("lead",),
        "r1",
    )


def test_what_no_rule_fits_is_refused_and_what_is_denied_too() -> None:
    """An effect fails before its call, with the rule's name; a read goes on."""
    refused = admitted(SEND, policy())
    assert isinstance(refused, Refuse)
    assert refused.failure.code == "NOT_PERMITTED"
    denied = admitted(SEND, policy({"tools": "send", "then": "deny", "message": "no mail today"}))
    assert isinstance(denied, Refuse)
    assert "'r1'" in denied.failure.message
    assert "no mail today" in denied.failure.message
    assert isinstance(admitted(a_step("a", args={"item": "x"}), policy()), Run)


def test_what_a_tool_fills_in_itself_is_nobodys_text() -> None:
    """A rule for calls without strangers' text fits where an argument is left to its default, and not where somebody
    has given one that nobody knows the source of."""
    kit = Toolkit("shop")

    @kit.tool(effect="irreversible", risk="low")
    def refund(amount: int, currency: str = "EUR") -> str:
        """Refund."""
        return f"{amount} {currency}"

    tool = Registry.of(kit)["refund"]
    clean = policy({"tools": "refund", "tainted": False, "args": {"currency": {"one_of": "EUR"}}, "then": "allow"})
    known = (Provenance(argument="amount", source="plan"),)
    assert ruling([clean], action_of(tool, {"amount": 5}, NOBODY, sources=known)).then == "allow"
    given = action_of(tool, {"amount": 5, "currency": "EUR"}, NOBODY, sources=known)
    assert ruling([clean], given).then == "deny"


def test_a_rule_that_asks_names_who_decides() -> None:
    """Terms and rule go with the question."""
    asked = admitted(SEND, policy({"tools": "send", "then": "ask", "approvers": ["lead"], "needed": 2}))
    assert isinstance(asked, Ask)
    assert (asked.rule, asked.terms) == ("r1", Terms(approvers=("lead",), needed=2))
    assert "rule 'r1'" in asked.reason


def test_a_rule_is_about_the_role_of_the_run() -> None:
    """The role that the server gave it, not one that a plan could name."""
    for_clerks = policy({**ALLOW, "roles": ["clerk"]})
    assert isinstance(admitted(SEND, for_clerks, role="clerk"), Run)
    assert isinstance(admitted(SEND, for_clerks, role="guest"), Refuse)
    assert isinstance(admitted(SEND, for_clerks), Refuse)


def test_a_floor_asks_where_the_tool_would_not() -> None:
    """The same tool, low for one text and high for another."""
    floors = [
        {"name": "money", "tools": "send", "args": {"text": {"matches": "(?is).*compensation.*"}}, "risk": "high"}
    ]
    rules = policy({**ALLOW, "risk": ["low", "medium"]}, {"effects": "write", "then": "ask"}, floors=floors)
    assert isinstance(admitted(SEND, rules), Run)
    asked = admitted(SEND.model_copy(update={"args": {"to": "ann", "text": "Your Compensation"}}), rules)
    assert isinstance(asked, Ask)
    assert asked.risk == "high"


def test_a_policy_that_came_later_can_only_forbid_more() -> None:
    """A run that began under one and goes on under another is held to both, in either order."""
    strict = policy({"tools": "send", "then": "ask"})
    for both in ((strict, policy(ALLOW)), (policy(ALLOW), strict)):
        assert isinstance(admitted(SEND, *both), Ask)
    assert isinstance(admitted(SEND, policy(ALLOW), policy()), Refuse)


def test_where_nobody_may_decide_by_all_policies_nothing_is_asked() -> None:
    """A question that nobody could answer is a refusal, and says why."""
    first, second = policy(ALLOW, asking={"approvers": ["a"]}), policy(ALLOW, asking={"approvers": ["b"]})
    assert isinstance(admitted(SEND, first, second), Run)
    refused = admitted(SEND.model_copy(update={"require_approval": True}), first, second)
    assert isinstance(refused, Refuse)
    assert "nobody may decide" in refused.failure.message


def test_an_approval_counts_on_the_terms_it_was_given_on() -> None:
    """One that fewer people, or others, have given is asked for anew; one on these terms is not."""
    call = {"action": f"a|{_call(SEND)}", "call": _call(SEND)}
    two = policy({"tools": "send", "then": "ask", "approvers": ["lead"], "needed": 2})

    def after(**terms: Any) -> Any:
        return admitted(SEND, two, rows=(answered("a", {"type": "approve"}, **call, terms=terms),))

    assert isinstance(after(approvers=["lead"], needed=2, rule="r1"), Run)
    for weaker in ({}, {"approvers": ["lead"]}, {"needed": 2}, {"approvers": ["lead", "intern"], "needed": 2}):
        asked = after(**weaker)
        assert isinstance(asked, Ask)
        assert "other terms" in asked.reason
    edited = admitted(SEND, two, rows=(answered("a", {"type": "edit", "args": dict(SEND.args)}, **call, by="bea"),))
    assert edited.reason.endswith("; bea has given it these arguments, which is one person's word")
    assert isinstance(after(approvers=["lead"], needed=3), Run)
    assert isinstance(after(approvers=["lead"], needed=2, escalates_to=["intern"]), Ask)


def _call(step: Step) -> str:
    asked = admitted(step.model_copy(update={"require_approval": True}))
    assert isinstance(asked, Ask)
    return asked.call


@pytest.mark.parametrize(
    ("decision", "terms", "counts"),
    [
        ({}, Terms(), True),
        ({"terms": {}}, Terms(needed=1), True),
        ({"terms": {"needed": 2}}, Terms(approvers=("a",), needed=2), False),
        ({"terms": {}}, Terms(by_another=True), False),
        ({"terms": {"not_by": "ann"}}, Terms(by_another=True), True),
        ({"terms": {"approvers": ["a"]}}, Terms(approvers=("a", "b")), True),
        (
            {"terms": {"approvers": ["a"], "escalates_to": ["b"]}},
            Terms(approvers=("a",), escalate_after_s=1, escalate_to=("b",)),
            True,
        ),
    ],
)
def test_terms_are_compared_by_who_and_how_many(decision: dict[str, Any], terms: Terms, counts: bool) -> None:
    """Anybody's word is not that of somebody with a role."""
    assert still_counts(decision, terms) is counts


def test_a_question_says_who_may_answer_it_and_until_when() -> None:
    """Several people only for an action; no silence answers whether something has happened."""
    terms = Terms(approvers=("a",), needed=2, expires_s=60, escalate_after_s=20, escalate_to=("b",))
    said = on_terms(terms, "risk", AT, 300)
    assert said == {
        "approvers": ("a",),
        "needed": 2,
        "expires_at": AT + timedelta(seconds=60),
        "escalates_at": AT + timedelta(seconds=20),
        "escalates_to": ("b",),
    }
    assert on_terms(terms, "question", AT, 300)["needed"] == 1
    assert "expires_at" not in on_terms(terms, "unknown_outcome", AT, 300)
    assert on_terms(Terms(), "risk", AT, 300)["expires_at"] == AT + timedelta(seconds=300)
    assert "expires_at" not in on_terms(Terms(), "risk", AT, None)
    assert on_terms(Terms(by_another=True), "risk", AT, None, "ann")["not_by"] == "ann"
    assert "not_by" not in on_terms(Terms(by_another=True), "unknown_outcome", AT, None, "ann")
    late = Terms(escalate_after_s=400, escalate_to=("b",))
    assert "escalates_at" not in on_terms(late, "risk", AT, 300)


def test_questions_that_no_rule_is_about_are_asked_on_the_policies_terms() -> None:
    """Of two policies those that satisfy both; where there are none, the first's."""
    first, second = policy(asking={"approvers": ["a", "b"]}), policy(asking={"approvers": ["b"], "expires_s": 9})
    assert asking_terms([]) == Terms()
    assert asking_terms([first, second]) == Terms(approvers=("b",), expires_s=9)
    assert asking_terms([second, policy(asking={"approvers": ["z"]})]).approvers == ("b",)


def test_a_plan_is_told_of_steps_that_are_denied_whatever_they_read() -> None:
    """Before anything runs; a step that may be allowed waits for its arguments."""
    rules = policy({"tools": "refund", "args": {"amount": {"at_most": 3}}, "then": "allow"})
    steps = [
        StepDraft(id="a", tool="refund", args={"amount": 5}),
        StepDraft(id="b", tool="refund", args={"amount": "${x.n}"}),
        StepDraft(id="c", tool="send", args={"to": "${x}", "text": "hi"}),
        StepDraft(id="d", tool="look"),
        StepDraft(id="e", tool="nothing"),
    ]
    found = denied_steps([rules], steps, TOOLS, CLERK)
    assert [(each.code, each.step, each.path) for each in found] == [
        ("NOT_PERMITTED", "a", "steps[0].tool"),
        ("NOT_PERMITTED", "c", "steps[2].tool"),
    ]
    assert denied_steps([], steps, TOOLS, CLERK) == []


def test_planners_are_offered_what_may_be_allowed() -> None:
    """Reads, and effects for which there is an argument that no rule denies."""
    rules = policy({"tools": "refund", "args": {"amount": {"at_most": 3}}, "roles": "clerk", "then": "allow"})
    offered = [name for name, tool in TOOLS.items() if may_be_called([rules], tool, CLERK)]
    assert offered == ["look", "refund", "unset"]
    assert not may_be_called([rules], TOOLS["refund"], NOBODY)
    assert may_be_called([], TOOLS["send"], NOBODY)


def test_defaults_of_a_tool_are_arguments_too() -> None:
    """A call without an argument is one with its default; what a tool does not take is known."""
    action = action_of(TOOLS["look"], {}, NOBODY)
    assert (action.args, action.takes) == ({"item": None}, frozenset({"item"}))
    assert action_of(TOOLS["look"], {}, NOBODY, unknown=["item"]).args == {}
