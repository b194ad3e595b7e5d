"""Tests of what a caller's message is to a thread: a new goal, an instruction, or a nod to go on."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from nodes.inbox import entry, goal_text, instruction_id, taken
from plans.limits import Usage

RUN = {"run": object()}
SAID = HumanMessage("hello", id="m1")


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({}, "new_goal"),
        ({"goal": "x"}, "new_goal"),
        ({"status": "running", "goal": "x"}, "new_goal"),
        *(({**RUN, "status": status, "goal": "x"}, "instruction") for status in ("running", "paused", "limited")),
        *(({**RUN, "status": status}, "continue") for status in ("running", "paused", "limited")),
        *(({**RUN, "status": status, "goal": "x"}, "new_goal") for status in ("done", "failed", "cancelled")),
        ({**RUN, "status": "paused", "messages": [SAID]}, "instruction"),
        ({**RUN, "status": "paused", "messages": [SAID], "seen_message": "m1"}, "continue"),
    ],
)
def test_where_an_invocation_enters_the_graph(state: dict[str, Any], where: str) -> None:
    """An open run takes what is said as an instruction, or goes on where nothing is; any other thread begins anew."""
    assert entry(state) == where


def test_the_goal_is_the_goal_or_the_last_human_message_that_is_new() -> None:
    """A message is taken once; what an assistant said is no goal; text is read from parts as well."""
    assert goal_text({"goal": "x", "messages": [SAID]}) == "x"
    assert goal_text({"messages": [SAID, AIMessage("hi")]}) == "hello"
    assert goal_text({"messages": [SAID], "seen_message": "m1"}) is None
    assert goal_text({"messages": [HumanMessage([{"type": "text", "text": "in parts"}], id="m2")]}) == "in parts"
    assert goal_text({}) is None


def test_taking_a_message_empties_the_inbox_and_remembers_it() -> None:
    """Afterwards the same state holds nothing new."""
    state: dict[str, Any] = {"goal": "x", "inputs": {"a": 1}, "messages": [SAID]}
    after = {**state, **taken(state)}
    assert goal_text(after) is None
    assert (after["inputs"], after["plan"], after["request_id"]) == (None, None, None)


def test_an_instruction_is_known_again_when_it_is_read_again_and_another_one_is_another() -> None:
    """The id is the message's, or comes from the words and when in the run they were said."""
    assert instruction_id({"messages": [SAID]}, "hello") == "m1"
    once = {"goal": "faster", "usage": Usage(steps=1)}
    assert instruction_id(once, "faster") == instruction_id(dict(once), "faster")
    later = {"goal": "faster", "usage": Usage(steps=2)}
    assert instruction_id(once, "faster") != instruction_id(later, "faster")
    assert instruction_id(once, "faster") != instruction_id(once, "slower")
