"""Where values come from: what is tainted, by what, and what the sources of arguments are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nodes.fold import RunFold, fold
from nodes.origins import read_by
from nodes.taint import MOST_ROOTS, is_tainted, result_taint, sources_of, taint_of
from plans.plan import Step
from plans.provenance import PERSON, PLAN, REPLAN, Provenance
from plans.references import references_in
from tests.nodes.rows import OUTPUT, Row, a_plan, a_step, begun, done, planned


def picture(*steps: Step, rows: Sequence[Row] = (), swayed: Sequence[str] = (), **head: Any) -> RunFold:
    """A run with this plan and these rows; `swayed` are steps that its plan's row says may be a stranger's wish."""
    kind, step_id, attempt, body = begun()
    body = {"head": {**body["head"], **head}}
    first = planned(a_plan(*steps))
    first = (*first[:3], {**first[3], "swayed": list(swayed)})
    return fold([(kind, step_id, attempt, body), first, *rows])


def gives(run: RunFold, step: Step, unit: str | None = None, *, trusted: bool) -> tuple[str, ...]:
    """By what the result of a step is tainted when it comes."""
    unit = unit or step.id
    return result_taint(run, step, unit, read_by(run, step, unit, conditions=False), trusted=trusted)


READ = a_step("s1")


def test_a_result_of_a_tool_that_is_not_trusted_is_its_own_origin() -> None:
    """And one of a trusted tool, from what the plan says, has none."""
    run = picture(READ)
    assert gives(run, READ, trusted=False) == ("s1",)
    assert gives(run, READ, trusted=True) == ()


@pytest.mark.parametrize(
    "step",
    [
        a_step("s2", "s1", args={"a": "${s1}"}),
        a_step("s2", "s1", args={"a": ["x", {"b": "to ${s1.name}!"}]}),
        a_step("s2", "s1", for_each="${s1.rows}", args={"a": "x"}),
        Step(id="s2", action="llm", instruction="sum it up", depends_on=("s1",)),
        Step(id="s2", action="plan", instruction="do it", args={"result": "${s1.x} euros"}, depends_on=("s1",)),
    ],
)
def test_what_is_made_from_a_tainted_result_is_tainted_whoever_makes_it(step: Step) -> None:
    """Through a reference, a text, a list, a judgement, a sub-goal; even where its own tool is trusted."""
    assert gives(picture(READ, step, rows=[done("s1", tainted_by=["s1"])]), step, trusted=True) == ("s1",)
    assert gives(picture(READ, step, rows=[done("s1")]), step, trusted=True) == ()


def test_what_only_waits_for_a_tainted_result_or_is_decided_by_it_is_not() -> None:
    """The plan has said before what happens then: no text of the result gets into what the step gives."""
    waits = a_step("s2", "s1", args={"a": "x"}, when="s1.ok", requires="s1.ok")
    assert gives(picture(READ, waits, rows=[done("s1", tainted_by=["s1"])]), waits, trusted=True) == ()


def test_a_result_stored_before_anybody_asked_is_not_trusted() -> None:
    """A row without the field, as versions before have written it."""
    old: Row = ("outcome", "s1", 1, {"output": OUTPUT, "elapsed_s": 0.5})
    assert taint_of(picture(READ, rows=[old]), "s1") == ("s1",)
    assert taint_of(picture(READ), "s1") == ()


def test_the_elements_of_a_list_bring_in_what_each_of_them_has() -> None:
    """Named by the list's step, not one by one."""
    each = a_step("s2", "s1", for_each="${s1}", args={"a": "${item}"})
    rows: list[Row] = [
        done("s1", tainted_by=["s1"]),
        ("expansion", "s2", 0, {"elements": ["x", "y"]}),
        done("s2[0]", tainted_by=["s2[0]", "s1"]),
        done("s2[1]", tainted_by=["s2[1]", "s1"]),
    ]
    assert gives(picture(READ, each, rows=rows), each, trusted=True) == ("s2", "s1")


def test_origins_are_bounded_and_never_none() -> None:
    """A step that reads from many keeps some: one is enough."""
    steps = [a_step(f"r{number}") for number in range(MOST_ROOTS + 5)]
    last = a_step("z", *(step.id for step in steps), args={"a": [f"${{{step.id}}}" for step in steps]})
    run = picture(*steps, last, rows=[done(step.id, tainted_by=[step.id]) for step in steps])
    assert len(gives(run, last, trusted=True)) == MOST_ROOTS


def test_what_a_plan_says_that_was_written_after_such_text_was_read_is_tainted_too() -> None:
    """Its literal arguments, and the results that are made with them."""
    step = a_step("s2", args={"name": "mallory"})
    run = picture(step, swayed=["s2"])
    assert gives(run, step, trusted=True) == (REPLAN,)
    assert sources_of(run, step, "s2") == (Provenance(argument="name", source=REPLAN, trusted=False),)


def test_a_step_that_a_person_writes_anew_is_theirs() -> None:
    """Where a model had written it after reading, nothing of that is left."""
    step = a_step("s2", args={"name": "mallory"})
    edited = step.model_copy(update={"args": {"name": "ann"}})
    revision = a_plan(edited, revision=2).model_copy(update={"source": "human"})
    run = picture(step, swayed=["s2"], rows=[planned(revision)])
    assert run.swayed == set()
    assert sources_of(run, edited, "s2") == (Provenance(argument="name", source=PERSON),)


def test_the_sources_of_arguments_are_named_as_they_are_written() -> None:
    """Each reference by its place, its path and the tool behind it; what the plan says itself by that."""
    step = a_step(
        "s2", "s1", args={"to": "${s1.rows[0].mail}", "n": 3, "text": "for ${inputs.who} by ${s1.by}", "in": ["${s1}"]}
    )
    run = picture(READ, step, rows=[done("s1", tainted_by=["s1"])], inputs={"who": "ann"})
    assert sources_of(run, step, "s2") == (
        Provenance(argument="to", source="s1.rows[0].mail", tool="look", trusted=False),
        Provenance(argument="n", source=PLAN),
        Provenance(argument="text", source="inputs.who"),
        Provenance(argument="text", source="s1.by", tool="look", trusted=False),
        Provenance(argument="in[0]", source="s1", tool="look", trusted=False),
    )


def test_an_element_is_traced_to_its_place_in_the_list() -> None:
    """`item` names nothing to a person; where the list comes from does."""
    each = a_step("s2", "s1", for_each="${s1.rows}", args={"to": "${item.mail}"})
    run = picture(READ, each, rows=[done("s1", tainted_by=["s1"])])
    expected = Provenance(argument="to", source="s1.rows[3].mail", tool="look", trusted=False)
    assert sources_of(run, each, "s2[3]") == (expected,)


def test_what_stands_in_for_a_tool_may_have_got_any_of_its_arguments() -> None:
    """The arguments of an alternative are made by expressions over the original ones: each may hold each of them."""
    step = a_step("s2", "s1", args={"to": "ann", "text": "${s1}"})
    run = picture(READ, step, rows=[done("s1", tainted_by=["s1"])])
    run.run("s2").tool, run.run("s2").args = "other", {"recipient": "eve"}
    assert {(each.argument, each.trusted) for each in sources_of(run, step, "s2")} == {
        ("recipient", True), ("recipient", False),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tainted"),
    [
        ("${inputs.note}", True), ("${inputs.note[0].x}", True), ("${inputs}", True), ("${inputs.*}", True),
        ("${inputs.who}", False), ("${inputs.who.note}", False), ('${inputs."note"}', True), ("${inputs | note}", True),
    ],
)  # fmt: skip
def test_an_input_is_trusted_unless_it_was_said_not_to_be(text: str, tainted: bool) -> None:
    """And where a reference does not say which one it means it may mean that."""
    step = a_step("s1", args={"a": text})
    run = picture(step, inputs={"note": "hi", "who": "ann"}, untrusted=["note"])
    assert is_tainted(run, step, references_in(text)[0]) is tainted
    assert gives(run, step, trusted=True) == (("inputs.note",) if tainted else ())
    assert not is_tainted(picture(step, inputs={"note": "hi"}), step, references_in(text)[0])
