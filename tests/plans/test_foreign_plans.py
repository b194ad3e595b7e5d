"""Plans in the conventions of other planners: refused, with what would be right, and without faults that follow only
from the first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plans.faults import MOST, Fault, errors_among
from plans.foreign_fields import FIELDS
from plans.lint import lint_reading
from plans.plan import PlanDraft, StepDraft
from plans.reader import read_plan
from tests.plans.sample import TOOLS

STEP: dict[str, Any] = {"id": "s1", "tool": "get_order", "args": {"order_id": "A1"}, "depends_on": []}


def judged(value: object) -> list[Fault]:
    """The errors of a plan that is written as JSON."""
    return errors_among(lint_reading(read_plan(json.dumps(value), "stop"), TOOLS))


def of_step(**fields: object) -> list[Fault]:
    """The errors of a plan of one step; what is None is left out of it."""
    step = {name: value for name, value in {**STEP, **fields}.items() if value is not None}
    return judged({"goal": "g", "steps": [step]})


@pytest.mark.parametrize("name", ["parameters", "tool_input", "inputs", "input", "action_input", "Arguments"])
def test_arguments_under_another_name_are_one_fault(name: str) -> None:
    """The field is named that was meant; nothing is said to be missing from arguments that were not read."""
    (fault,) = of_step(args=None, **{name: STEP["args"]})
    assert (fault.code, fault.step, fault.path) == ("SCHEMA_INVALID", "s1", f"steps[0].{name}")
    assert fault.fix == "did you mean 'args'?"


@pytest.mark.parametrize(
    ("left_out", "name", "meant"),
    [
        ("depends_on", "dependencies", "depends_on"),
        ("depends_on", "deps", "depends_on"),
        ("depends_on", "after", "depends_on"),
        ("tool", "name", "tool"),
        ("tool", "function", "tool"),
        ("id", "name", "id"),
        ("id", "step_number", "id"),
        ("reason", "thought", "reason"),
        ("title", "name", "title"),
    ],
)
def test_each_field_under_another_name_is_told_by_ours(left_out: str, name: str, meant: str) -> None:
    """What is missing decides what an ambiguous name was to be."""
    faults = of_step(**{left_out: None, name: ["s1"] if left_out == "depends_on" else "x"})
    assert [fault.fix for fault in faults if fault.path == f"steps[0].{name}"] == [f"did you mean {meant!r}?"]


@pytest.mark.parametrize("name", ["plan", "tasks", "actions"])
def test_steps_under_another_name_are_told_by_ours(name: str) -> None:
    """A plan whose list of steps has another name."""
    faults = judged({"goal": "g", name: [STEP]})
    assert "did you mean 'steps'?" in {fault.fix for fault in faults}


def test_a_field_that_is_there_is_not_what_another_was_to_be() -> None:
    """Arguments beside arguments are one field too many."""
    (fault,) = of_step(parameters={})
    assert fault.fix is not None
    assert "did you mean" not in fault.fix


def test_what_other_names_stand_for_are_fields() -> None:
    """No fix proposes a field that would be refused, or another name for one that is right."""
    fields = {*StepDraft.model_fields, *PlanDraft.model_fields}
    assert {field for meant in FIELDS.values() for field in meant} <= fields
    assert not fields.intersection(FIELDS)


def test_a_tool_as_the_action_is_told_where_it_belongs() -> None:
    """`{"action": "get_order", "action_input": …}`, as agents that reason and act write it."""
    (fault,) = [each for each in of_step(tool=None, action="get_order") if each.path == "steps[0].action"]
    assert fault.fix == "write the tool's name in 'tool', and 'tool' as the action"


@pytest.mark.parametrize(("name", "fix"), [(1, "s1"), (-7, "s7"), ("1", "s1"), ("step 1", "step_1"), ("a.b", "a_b")])
def test_an_id_that_is_none_is_told_how_it_could_be_written(name: object, fix: str) -> None:
    """Numbers, digits, words with spaces."""
    (fault,) = of_step(id=name)
    assert (fault.path, fault.fix) == ("steps[0].id", f"call it {fix!r}, for example")


@pytest.mark.parametrize("name", ["", "第一步", "--", True])
def test_an_id_of_which_nothing_is_left_gets_no_proposal(name: object) -> None:
    """Nothing is made up."""
    (fault,) = of_step(id=name)
    assert fault.fix is None


def test_a_dependency_by_number_is_told_to_be_an_id() -> None:
    """`depends_on: [1]`."""
    (fault,) = of_step(depends_on=[1])
    assert fault.fix == 'name the step by its id, as text: "s1"'


def test_a_bare_list_of_steps_is_told_what_to_stand_in() -> None:
    """The steps without goal, as many planners give them."""
    (fault,) = judged([STEP])
    assert fault.fix == 'write {"goal": …, "steps": this list}'


def test_a_key_twice_in_quoted_arguments_is_placed_where_it_stands() -> None:
    """The place in words is the place in the path."""
    (fault,) = of_step(args='{"order_id": "A1", "order_id": "A2"}')
    assert (fault.code, fault.path) == ("DUPLICATE_KEY", "steps[0].args.order_id")
    assert fault.message.endswith("stands twice in steps[0].args")


@pytest.mark.parametrize(
    "plan",
    [
        {"goal": "g", "steps": [None] * 1_000},
        {"goal": "g", "steps": [{**STEP, "id": number, "depends_on": [number - 1]} for number in range(1_000)]},
        {"goal": "g", "steps": [{**STEP, **{f"x{number}": 1 for number in range(1_000)}}]},
        {"goal": "g", "steps": [{**STEP, "args": {f"x{number}": "\0" for number in range(1_000)}}]},
    ],
    ids=["no steps", "numbers", "fields", "characters"],
)
def test_a_plan_that_is_wrong_everywhere_is_told_so_a_bounded_number_of_times(plan: dict[str, Any]) -> None:
    """Whoever has two hundred faults of a kind learns nothing from the rest; no answer fills a prompt or a terminal."""
    faults = judged(plan)
    assert 0 < len(faults) <= 2 * MOST + 2
