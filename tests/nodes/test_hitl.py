"""What inboxes are shown and what they send: nothing but an exact decision counts, and none stands for another."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.hitl import Said, inbox_request, read_answer, sent_at
from plans.decisions import ApprovalRequest, Approve, Edit, Reject
from plans.errors import MalformedDecision, StaleDecision, UnknownApproval
from plans.provenance import Provenance
from plans.values import sha256_of
from tests.nodes.rows import asked

YES, NO = {"type": "approve"}, {"type": "reject", "message": "no"}


def requests(*units: str) -> list[ApprovalRequest]:
    """Pending questions about these steps."""
    return [ApprovalRequest.model_validate(asked(unit)[3]["request"]) for unit in units]


def decided(said: list[Said]) -> dict[str, Any]:
    """What counts, by request."""
    return {each.request.approval_id: each.decision for each in said if each.request and each.decision}


def test_the_interrupt_has_the_shape_that_inboxes_read() -> None:
    """Actions and what may be answered to each, in the same order, with what binds the answer to the action."""
    shown = inbox_request(requests("a", "b"))
    assert list(shown) == ["action_requests", "review_configs"]
    assert [each["step_id"] for each in shown["action_requests"]] == ["a", "b"]
    first = shown["action_requests"][0]
    assert (first["name"], first["args"], first["args_sha256"]) == ("send", {}, sha256_of({}))
    assert first["approval_id"] == "ask-a"
    assert shown["review_configs"][0] == {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject"]}


def test_people_are_shown_what_they_decide_by() -> None:
    """Where each value came from, which rule asks, of whom and how many, until when, and what was refused before."""
    source = Provenance(argument="to", source="s1.email", tool="read_mail", trusted=False)
    more = {"sources": (source,), "rule": "refunds", "needed": 2, "approvers": ("lead",)}
    [request] = requests("a")
    request = ApprovalRequest.model_validate({**request.model_dump(), **more, "expires_at": "2030-01-01T00:00Z"})
    refused = [{"code": "STALE_DECISION", "message": "why"}]
    shown = inbox_request([request], refused)
    action = shown["action_requests"][0]
    assert action["sources"] == [{"argument": "to", "source": "s1.email", "tool": "read_mail", "trusted": False}]
    assert (action["rule"], action["needed"], action["approvers"]) == ("refunds", 2, ["lead"])
    assert (action["expires_at"], action["risk"], shown["refused"]) == ("2030-01-01T00:00:00Z", request.risk, refused)


@pytest.mark.parametrize(
    "answer",
    [
        True, "yes", [], [YES, YES], {"decisions": "approve"}, {"decisions": []}, {"decisions": {}}, {"approve": True},
        {"decisions": [YES]}, {"decisions": [YES] * 3}, {"decisions": [YES, YES], "force": True},
        {"decisions": [{"type": "yes"}, {"type": "approve", "force": True}]}, {"decisions": [None, "approve"]},
        {"decisions": [{"type": "edit"}, {"type": "edit", "edited_action": {}}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "x", "args": {}}}, {"type": "reject", "message": 1}]},
        {"decisions": [{**YES, "approval_id": "ask-a"}, YES]}, {"decisions": [{**YES, "approval_id": "ask-a"}] * 2},
        {"decisions": [{**YES, "approval_id": 1}, {**YES, "approval_id": "ask-a", "args_sha256": 1}]},
        {"decisions": {"ask-a": "approve", "ask-b": {"type": "approve", "x": 1}}},
    ],
)  # fmt: skip
def test_anything_but_an_exact_decision_decides_nothing_and_says_why(answer: Any) -> None:
    """A truthy value, a list of another length, an unknown, incomplete or doubled decision: both questions stay."""
    said = read_answer(requests("a", "b"), answer)
    assert decided(said) == {}
    assert said
    assert all(isinstance(each.why_not, MalformedDecision | UnknownApproval) for each in said)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"type": "ok"}, "its `type` has to be one of approve, edit, reject"),
        ({}, "its `type` has to be one of approve, edit, reject"),
        ({"type": "approve", "force": True}, "it has no `force`"),
        ({"type": "edit"}, "`args` is missing"),
        ({"type": "reject", "message": 1}, "`message` is not what it should be"),
    ],
)
def test_what_is_wrong_with_a_decision_is_said_in_our_words(said: dict[str, Any], why: str) -> None:
    """And what would be right, where that is short."""
    [read] = read_answer(requests("a"), {"decisions": [said]})
    assert str(read.why_not) == f"no decision about send of step a: {why}"


def test_whoever_only_goes_on_says_nothing() -> None:
    """Neither a decision nor a mistake."""
    assert read_answer(requests("a"), {}) == read_answer(requests("a"), None) == []


def test_decisions_are_read_in_the_order_of_the_questions() -> None:
    """An exact one counts although its neighbour does not; an edit carries its action's arguments."""
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "bob"}}}
    answer = {"decisions": [edit, {"type": "maybe"}, NO]}
    said = read_answer(requests("a", "b", "c"), answer)
    assert decided(said) == {"ask-a": Edit(args={"to": "bob"}), "ask-c": Reject(message="no")}


def test_decisions_that_name_their_request_need_no_order_and_no_number() -> None:
    """As a list or as a map; the hash that was seen goes with them; a stranger's id decides nothing."""
    named = {"decisions": [{**NO, "approval_id": "ask-c", "args_sha256": "h"}, {**YES, "approval_id": "ask-a"}]}
    said = read_answer(requests("a", "b", "c"), named)
    assert decided(said) == {"ask-c": Reject(message="no"), "ask-a": Approve()}
    assert [each.args_sha256 for each in said] == ["h", None]
    said = read_answer(requests("a", "b"), {"decisions": {"ask-b": YES, "ask-z": YES}})
    assert decided(said) == {"ask-b": Approve()}
    assert [type(each.why_not) for each in said] == [type(None), UnknownApproval]


def test_an_answer_that_was_sent_before_a_question_was_shown_is_about_another_one() -> None:
    """The second of two clicks answers nothing that comes next, unless it names it."""

    def is_b(request: ApprovalRequest) -> bool:
        return request.step_id == "b"

    said = read_answer(requests("a", "b"), {"decisions": [YES, YES]}, is_b)
    assert (decided(said), type(said[1].why_not)) == ({"ask-a": Approve()}, StaleDecision)
    assert decided(read_answer(requests("a", "b"), {"decisions": {"ask-b": YES}}, is_b)) == {"ask-b": Approve()}


NAMED = [{**YES, "approval_id": "ask-a"}, {**NO, "approval_id": "ask-b"}]
_ITEMS = st.sampled_from(["approve", None, 1, {}, YES, NO, *NAMED])
_JSON = st.recursive(_ITEMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner))


_ANSWERS = _JSON | st.fixed_dictionaries({"decisions": st.lists(_ITEMS, max_size=4) | _JSON})


@given(st.sampled_from([(), ("a",), ("a", "b"), ("a", "b", "c")]), _ANSWERS)
def test_no_answer_decides_a_request_twice_or_one_that_was_not_asked(units: tuple[str, ...], answer: Any) -> None:
    """Whatever JSON comes: at most one decision each, and by place only from a list as long as the questions."""
    asked_for = requests(*units)
    said = [each for each in read_answer(asked_for, answer) if each.decision is not None]
    ids = [each.request.approval_id for each in said if each.request is not None]
    assert len(ids) == len(said) == len(set(ids))
    assert set(ids) <= {request.approval_id for request in asked_for}


def test_a_server_s_id_says_when_an_invocation_was_sent() -> None:
    """A UUID of version 7 begins with milliseconds since 1970; any other id says nothing."""
    name = UUID("019a0000-0000-7000-8000-000000000000")
    assert sent_at({"metadata": {"run_id": str(name)}}) == int("019a00000000", 16) / 1000
    for other in (None, "once", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"):
        assert sent_at({"metadata": {"run_id": other}}) is None
    assert sent_at({}) is None
