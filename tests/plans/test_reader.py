"""Reading plans: what stands there is taken as it stands, and everything else is named."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.drafting import drafted
from plans.json_text import NotJSON, strict_json
from plans.plan import SCHEMA_VERSION, Plan, PlanDraft
from plans.reader import MAX_TEXT, read_plan
from plans.values import MAX_DEPTH, canonical
from tests.plans.sample import DRAFT, PLAN, TEXT, plan, values, with_step


def codes(text: str, finish_reason: str | None = None) -> set[str]:
    """The codes of the faults of a text; a text with faults gives no draft."""
    reading = read_plan(text, finish_reason)
    assert (reading.draft is None) == bool(reading.faults)
    return {fault.code for fault in reading.faults}


@pytest.mark.parametrize(
    "text", [TEXT, json.dumps(PLAN, indent=4), f"\n\t {TEXT} \n", json.dumps(PLAN).replace(" ", "")]
)
def test_a_plan_in_json_is_read_as_it_stands(text: str) -> None:
    """However it is laid out, JSON that is a plan gives its draft and is not marked as repaired."""
    reading = read_plan(text, "stop")
    assert (reading.draft, reading.repaired, reading.faults) == (DRAFT, False, ())


@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda key: key.isalnum()), values, max_size=3))
def test_arguments_arrive_exactly_as_they_were_written(args: dict[str, Any]) -> None:
    """Every JSON value that can be stored comes through reading unchanged, to the type."""
    reading = read_plan(json.dumps(with_step(0, args=args)))
    assert reading.draft is not None
    assert canonical(reading.draft.steps[0].args) == canonical(args)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PLAN_SYNTAX"),
        (" \n ", "PLAN_SYNTAX"),
        ("I cannot help with that.", "PLAN_SYNTAX"),
        ("null", "SCHEMA_INVALID"),
        ("[]", "SCHEMA_INVALID"),
        ("42", "SCHEMA_INVALID"),
        ('"goal"', "SCHEMA_INVALID"),
        ("{}", "SCHEMA_INVALID"),
        ('{"error": "cannot"}', "SCHEMA_INVALID"),
        ('{"goal": "g"}', "SCHEMA_INVALID"),
        ('{"goal": "g", "steps": []}', "PLAN_EMPTY"),
        (json.dumps([PLAN]), "SCHEMA_INVALID"),
        (json.dumps(PLAN["steps"]), "SCHEMA_INVALID"),
        (json.dumps({"plan": PLAN}), "SCHEMA_INVALID"),
        (json.dumps([PLAN, PLAN]), "PLAN_AMBIGUOUS"),
        (json.dumps(plan(steps={"s1": {}})), "SCHEMA_INVALID"),
        (json.dumps(plan(steps="none")), "SCHEMA_INVALID"),
        (json.dumps(plan(goal=None)), "SCHEMA_INVALID"),
        (json.dumps(plan(goal=7)), "SCHEMA_INVALID"),
        (json.dumps(plan(approve="all")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, id="s 1")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, id="x" * 65)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, id=1)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, tool=None)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, action="shell")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, action="llm")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, action="llm", tool=None)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, depends_on="s2")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, depends_on=[1])), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, args=[{"name": "order_id", "value": "A1"}])), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, require_approval="yes")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, require_approval=1)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, timeout_s="5")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, timeout_s=0)), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, risk="none")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, source="internal")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, reason="a\ud800b")), "SCHEMA_INVALID"),
        (json.dumps(plan(goal="a\x00b")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, args={"order_id": "a\x00b"})), "INVALID_ARGS"),
        (json.dumps(with_step(0, args={"order_id": "a\udfffb"})), "INVALID_ARGS"),
        (json.dumps(with_step(0, args={"order_id": 2**64})), "INVALID_ARGS"),
        (TEXT.replace('"A1"', "9" * 5000), "INVALID_ARGS"),
        (TEXT.replace('"A1"', "-" + "9" * 5000), "INVALID_ARGS"),
        (TEXT.replace('"A1"', "1e400"), "INVALID_ARGS"),
        (TEXT.replace('"A1"', "NaN"), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "-Infinity"), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "007"), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "0x1F"), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "undefined"), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "[" * 100 + "]" * 100), "PLAN_SYNTAX"),
        (TEXT.replace('"A1"', "[" * 200_000), "PLAN_SYNTAX"),
        ("[" * 200_000, "PLAN_SYNTAX"),
        ('{"a":' * 200_000, "PLAN_SYNTAX"),
        (TEXT + " " * MAX_TEXT, "PLAN_SYNTAX"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_plan_is_refused_for_a_stated_reason(text: str, code: str) -> None:
    """Each kind of fault has its code; nothing is coerced, dropped or guessed."""
    assert code in codes(text)


def test_a_key_that_stands_twice_is_a_fault_with_its_path() -> None:
    """Readers disagree on which of two equal keys counts, so neither does; the path says where they stand."""
    text = TEXT.replace('"order_id": "A1"', '"order_id": "A1", "order_id": "A2"')
    (fault,) = read_plan(text).faults
    assert (fault.code, fault.path, fault.step) == ("DUPLICATE_KEY", "steps[0].args.order_id", "s1")
    assert codes('{"goal": "g", "goal": "h", "steps": []}') >= {"DUPLICATE_KEY"}
    assert codes(TEXT.replace('"goal": "g"', '"goal": "g", "\\u0067oal": "g"')) == {"DUPLICATE_KEY"}


def test_an_answer_at_the_token_limit_is_never_a_plan() -> None:
    """What was cut off may be complete by accident: it is refused even then."""
    assert codes(TEXT, "length") == {"PLAN_TRUNCATED"}
    assert codes(TEXT[:60], "length") == {"PLAN_TRUNCATED"}


def test_a_filtered_answer_is_a_refusal() -> None:
    """An answer that a content filter stopped is not read."""
    assert codes(TEXT, "content_filter") == {"PLAN_REFUSED"}


def test_all_faults_of_form_come_at_once() -> None:
    """Whoever mends a plan sees everything that is wrong with it the first time, each fault with step and place."""
    broken = plan(steps=[{"id": "a b", "tool": "t", "args": 1}, {"id": "s2", "depend_on": []}, 7], anwser="x")
    found = read_plan(json.dumps(broken)).faults
    places = {(fault.step, fault.path) for fault in found}
    assert places >= {
        ("a b", "steps[0].id"),
        ("a b", "steps[0].args"),
        ("s2", "steps[1].depend_on"),
        (None, "steps[2]"),
        (None, "anwser"),
    }
    fixes = {fault.path: fault.fix for fault in found}
    assert fixes["steps[1].depend_on"] == "did you mean 'depends_on'?"
    assert fixes["anwser"] == "did you mean 'answer'?"


def test_a_message_never_repeats_a_long_value() -> None:
    """A hostile or huge value does not travel on inside the fault about it."""
    long = "x" * 100_000
    for broken in (
        with_step(0, id=long),
        with_step(0, risk=long),
        with_step(0, action=long),
        {long: 1},
        with_step(0, **{long: 1}),
    ):
        assert all(len(str(fault)) < 1_000 for fault in read_plan(json.dumps(broken)).faults)


def test_a_stored_plan_reads_back() -> None:
    """What was printed or stored is a plan file again: fields that Surestep sets itself are read past."""
    stored = Plan.model_validate({**PLAN, "plan_id": "p", "revision": 3, "source": "model", "template": "late"})
    reading = read_plan(stored.model_dump_json())
    assert (reading.draft, reading.repaired) == (stored.draft, False)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (SCHEMA_VERSION + 1, "VERSION_TOO_NEW"),
        (0, "SCHEMA_INVALID"),
        ("1", "SCHEMA_INVALID"),
        (True, "SCHEMA_INVALID"),
        (1.0, "SCHEMA_INVALID"),
    ],
)
def test_a_plan_of_an_unknown_version_is_refused(version: object, code: str) -> None:
    """A newer Surestep's plan may mean things that this one does not know; a version that never was is no version."""
    assert codes(json.dumps(plan(schema_version=version))) == {code}


def test_what_can_be_read_of_each_step_is_handed_on_for_checking() -> None:
    """A broken field hides nothing but itself: all steps stand at their places, with what is not known marked."""
    steps = [{"id": "bad", "depends_on": ["s1", 3]}, PLAN["steps"][0], 7, {"tool": "t", "args": 1}]
    legible = read_plan(json.dumps(plan(steps=steps))).legible
    assert legible is not None
    assert [(step.id, step.tool, step.depends_on) for step in legible.draft.steps] == [
        ("bad", None, ("s1",)), ("s1", "get_order", ()), ("", "t", ())
    ]  # fmt: skip
    assert (legible.positions, legible.nameless) == ((0, 1, 3), True)
    assert legible.doubtful == {
        0: {("depends_on",), ("action",), ("tool",)},
        3: {("id",), ("args",)},
    }


@given(st.text(max_size=60) | st.text("{}[]\"',:\\n/#<think> goalsteps`", max_size=60))
def test_any_text_gives_a_reading(text: str) -> None:
    """Whatever comes in, a draft or faults come out: never an exception, never both."""
    reading = read_plan(text)
    assert (reading.draft is None) == bool(reading.faults)


@given(st.data())
def test_any_damage_to_a_plan_is_survived(data: st.DataObject) -> None:
    """A plan with a piece cut out, doubled or replaced is read or refused, whatever the piece."""
    start = data.draw(st.integers(0, len(TEXT)))
    end = data.draw(st.integers(start, len(TEXT)))
    piece = data.draw(
        st.sampled_from(["", TEXT[start:end] * 2, '"', "}", "]", ",", "\\", "//", "\x00", "\ud800", "{", "<think>"])
    )
    reading = read_plan(TEXT[:start] + piece + TEXT[end:])
    assert (reading.draft is None) == bool(reading.faults)


@given(values)
def test_any_value_is_a_draft_or_has_faults(value: object) -> None:
    """What was read may be any JSON: it is judged without an exception, as a plan and as the steps of one."""
    for written in (value, {"goal": "g", "steps": value}, {"goal": "g", "steps": [value]}, with_step(0, args=value)):
        reading = drafted(written)
        assert (reading.draft is None) == bool(reading.faults)


def test_reading_leaves_what_it_was_given_alone() -> None:
    """A value that is unpacked or upgraded on the way is copied, never changed."""
    written = plan(steps=json.dumps(PLAN["steps"]), schema_version=SCHEMA_VERSION)
    before = json.dumps(written)
    assert drafted(written).draft == DRAFT
    assert json.dumps(written) == before


def test_strict_json_is_strict() -> None:
    """Depth is refused before it is followed; a key twice and NaN are no JSON."""
    assert strict_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for text in (
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a": 1, "a": 1}',
        "NaN",
        "[-Infinity]",
        "[1,]",
        "1 2",
    ):
        with pytest.raises(NotJSON):
            strict_json(text)


def test_aliases_do_not_nest_deeper_than_text() -> None:
    """A YAML file whose aliases stack up on each other is refused like brackets would be."""
    layers = "".join(f"a{n}: &a{n} {'[' * 40}{f'*a{n - 1}' if n else 'x'}{']' * 40}\n" for n in range(2))
    (fault,) = read_plan(f"goal: g\n{layers}").faults
    assert (fault.code, "deeper" in fault.message) == ("PLAN_SYNTAX", True)


def test_a_huge_plan_is_read_quickly() -> None:
    """Ten thousand steps, or a goal of a megabyte, take a second or two at most, also where the text needs repair."""
    steps = [{"id": f"s{n}", "tool": "t", "args": {"a": [n, "x"]}, "reason": "r"} for n in range(10_000)]
    texts = [json.dumps({"goal": "g", "steps": steps}), json.dumps({"goal": "x" * 1_000_000, "steps": steps[:1]})]
    started = time.process_time()
    for text in texts:
        assert isinstance(read_plan(text).draft, PlanDraft)
        assert read_plan(f"```json\n{text}\n```").repaired
    assert time.process_time() - started < 8
