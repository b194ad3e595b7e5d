"""A person's no: it holds for the action, whatever a later step is called and however it is written."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.admit import Admission, Ask, Facts, Refuse, Run, admit
from nodes.fold import RunFold, fold
from nodes.inheritance import inheritance
from nodes.rejection import meaning
from plans.plan import Step
from plans.values import sha256_of
from tests.nodes.rows import Row, a_plan, a_step, answered, begun, done, planned
from tools.registry import Registry, Toolkit

kit = Toolkit("bank")


@kit.tool(effect="idempotent", risk="low")
def book(account: str, cents: float = 100, note: str | None = None) -> dict[str, str]:
    """Book something."""
    return {"booked": account}


@kit.tool(effect="idempotent", risk="low")
def post(text: str) -> dict[str, str]:
    """Post something."""
    return {"posted": text}


TOOLS = dict(Registry.of(kit))
ARGS = {"account": "eve", "cents": 100}
DONE = a_step("d", tool="post", args={"text": "x"})


def no(args: dict[str, Any]) -> Row:
    """A person rejects a booking with these arguments; the row says what `apply_decision` writes."""
    call = f"book|{sha256_of(args)}"
    named = {"call": call, "action": f"a|{call}", "tool": "book", "means": meaning(TOOLS["book"], "book", args)}
    return answered("a", {"type": "reject", "message": ""}, **named)


def rejected(*steps: Step) -> RunFold:
    """A run in which a booking for eve was rejected, then planned anew with these steps."""
    first = planned(a_plan(DONE, a_step("a", tool="book", args=ARGS, require_approval=True)))
    return fold([begun(), first, done("d"), no(ARGS), planned(a_plan(DONE, *steps, revision=2), "global")])


def asked_to_start(step: Step, picture: RunFold) -> Admission:
    """What comes out when the step asks to start."""
    return admit(step, picture, Facts(step.id, {"inputs": {}}, tool=TOOLS[step.tool or ""]))


@pytest.mark.parametrize(
    "args",
    [ARGS, {"account": "eve"}, {"account": "eve", "cents": 100.0}, {"account": " eve "}, {**ARGS, "note": None}],
)
def test_a_rejected_call_stays_rejected_under_any_id_and_in_any_spelling(args: dict[str, Any]) -> None:
    """Defaults said or left out, `100.0` for `100`, spaces: it is the same booking, and nobody is asked again."""
    step = a_step("other_id", tool="book", args=args)
    refusal = asked_to_start(step, rejected(step))
    assert isinstance(refusal, Refuse)
    assert refusal.failure.code == "REJECTED"


def test_after_a_no_other_words_are_for_a_person_to_decide() -> None:
    """A later plan that books something a little different has it asked, though the tool is of low risk and the plan
    asks for nothing; another tool has nothing to do with it."""
    step, other = (
        a_step("b", tool="book", args={**ARGS, "note": "please"}),
        a_step("p", tool="post", args={"text": "y"}),
    )
    picture = rejected(step, other)
    asked = asked_to_start(step, picture)
    assert isinstance(asked, Ask)
    assert asked.reason == "a person has rejected another call of book in this run"
    assert isinstance(asked_to_start(other, picture), Run)


def test_what_was_planned_before_the_no_is_not_asked_because_of_it() -> None:
    """A step that stands beside the rejected one was looked at with it."""
    beside = a_step("b", tool="book", args={"account": "ann"})
    picture = fold([begun(), planned(a_plan(a_step("a", tool="book", args=ARGS), beside)), no(ARGS)])
    assert isinstance(asked_to_start(beside, picture), Run)


def test_a_fork_takes_the_no_with_it() -> None:
    """Under any id and spelling, and for other words that are planned in the fork."""
    parent = rejected(a_step("b", tool="post", args={"text": "y"}))
    same, words = (
        a_step("b", tool="book", args={"account": "eve"}),
        a_step("c", tool="book", args={"account": "mallory"}),
    )
    inherited: Row = ("inherited", None, 0, inheritance(parent, "b"))
    first = planned(a_plan(DONE))
    picture = fold([begun(), inherited, first, planned(a_plan(DONE, same, words, revision=2), "global")])
    assert isinstance(asked_to_start(same, picture), Refuse)
    assert isinstance(asked_to_start(words, picture), Ask)
