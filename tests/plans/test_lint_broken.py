"""Plans with faults of form: what is broken hides nothing but itself, and nothing is said of what is not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plans.faults import errors_among
from plans.lint import lint_reading
from plans.reader import read_plan
from tests.plans.sample import PLAN, TOOLS, plan, with_step

GET = {"id": "s1", "tool": "get_order", "args": {"order_id": "A1"}}


def told(*steps: Any, **fields: Any) -> list[tuple[str, str]]:
    """Code and path of each error of a plan as it was written."""
    return of_text(json.dumps(plan(steps=list(steps), **fields)))


def of_text(text: str) -> list[tuple[str, str]]:
    """The same of a text."""
    return sorted((fault.code, fault.path) for fault in errors_among(lint_reading(read_plan(text), TOOLS)))


def test_a_field_that_is_unknown_hides_no_other_fault_of_its_step() -> None:
    """Tool, arguments, edges, references and conditions of the step are judged all the same."""
    step = {"id": "s1", "tool": "nope", "depends_on": ["s9", "s1"], "args": {"a": "${s8}"}, "when": "(", "x": 1}
    assert told(step) == [
        ("CYCLE", "steps[0].depends_on"),
        ("SCHEMA_INVALID", "steps[0].when"),
        ("SCHEMA_INVALID", "steps[0].x"),
        ("UNKNOWN_DEPENDENCY", "steps[0].depends_on[0]"),
        ("UNKNOWN_REFERENCE", "steps[0].args.a"),
        ("UNKNOWN_TOOL", "steps[0].tool"),
    ]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"args": 3}, []),
        ({"args": None, "arg": {}}, []),
        ({"tool": 3}, []),
        ({"tool": ["get_order"]}, []),
        ({"depends_on": "s7"}, []),
        ({"depends_on": ["s7", 3]}, [("UNKNOWN_DEPENDENCY", "steps[0].depends_on[0]")]),
        ({"for_each": 3, "args": {"order_id": "${item.x}"}}, []),
        ({"output_schema": 3, "success_when": "zzz"}, []),
        ({"success_when": 3}, []),
        ({"action": "shell"}, []),
        ({"action": "shell", "tool": "nope"}, [("UNKNOWN_TOOL", "steps[0].tool")]),
        ({"action": "llm", "tool": "nope", "instruction": "x"}, [("UNKNOWN_TOOL", "steps[0].tool")]),
        ({"action": "llm", "tool": None, "args": {"a": "${s9}"}}, [("UNKNOWN_REFERENCE", "steps[0].args.a")]),
        ({"timeout_s": "5", "args": {}}, [("INVALID_ARGS", "steps[0].args.order_id")]),
        ({"id": "s 1", "args": {}}, [("INVALID_ARGS", "steps[0].args.order_id")]),
    ],
    ids=str,
)
def test_of_a_field_that_cannot_be_read_nothing_more_is_said(
    changes: dict[str, Any], more: list[tuple[str, str]]
) -> None:
    """Its own fault of form is there, and beside it only faults of what can be read."""
    found = of_text(json.dumps(with_step(0, **changes)))
    # The other step reads from this one, which is a fault where its name is no good.
    assert [fault for fault in found if fault[0] != "SCHEMA_INVALID" and fault[1].startswith("steps[0]")] == more
    assert any(code == "SCHEMA_INVALID" for code, _ in found)


def test_a_cycle_through_broken_steps_is_reported() -> None:
    """An edge counts, whatever else is wrong with the steps at its ends."""
    first = {**GET, "tool": ["get_order"], "depends_on": ["s2"]}
    assert ("CYCLE", "steps[0].depends_on") in told(first, {**GET, "id": "s2", "depends_on": ["s1"], "z": 1})


def test_what_an_action_needs_is_asked_of_steps_with_other_faults_too() -> None:
    """A missing tool and an unknown field are two faults."""
    assert told({"id": "s1", "x": 1}) == [("SCHEMA_INVALID", "steps[0]"), ("SCHEMA_INVALID", "steps[0].x")]
    assert told({"id": "s1", "tool": "get_order", "action": 3, "args": {"order_id": "A"}}) == [
        ("SCHEMA_INVALID", "steps[0].action")
    ]


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ('"goal": "g"', '"goal": "g", "goal": "h"', "goal"),
        ('"id": "s1"', '"id": "s1", "id": "s1"', "steps[0].id"),
        ('"tool": "get_order"', '"tool": "get_order", "tool": "nope"', "steps[0].tool"),
        ('"args": {"order_id": "A1"}', '"args": {"order_id": "A1"}, "args": {}', "steps[0].args"),
        ('"order_id": "A1"', '"order_id": "A1", "order_id": 3', "steps[0].args.order_id"),
        ('"depends_on": []', '"depends_on": [], "depends_on": ["s9"]', "steps[0].depends_on"),
    ],
)
def test_of_a_key_that_stands_twice_neither_value_is_judged(before: str, after: str, path: str) -> None:
    """At every depth the doubled key is the one fault, with its path; a doubled argument hides no other argument."""
    assert of_text(json.dumps(PLAN).replace(before, after, 1)) == [("DUPLICATE_KEY", path)]
    text = json.dumps(PLAN).replace('"order_id": "A1"', '"order_id": "A1", "order_id": 3, "x": 1')
    assert of_text(text) == [("DUPLICATE_KEY", "steps[0].args.order_id"), ("INVALID_ARGS", "steps[0].args.x")]
    deep = json.dumps(PLAN).replace('"hi"', '{"a": [{"b": 1, "b": 2}]}')
    assert ("DUPLICATE_KEY", "steps[1].args.body.a[0].b") in of_text(deep)
