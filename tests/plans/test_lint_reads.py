"""The linter's checks of what a step reads: references, conditions and schemas."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plans.faults import Fault, errors_among
from plans.lint import lint
from plans.lint_schemas import schema_problem
from plans.values import JSON
from tests.plans.sample import TOOLS, of_steps

LOOP = {"id": "s2", "for_each": "${s1.lines}"}


def found(*steps: dict[str, Any], inputs: tuple[str, ...] | None = ("orders", "day"), **fields: Any) -> list[Fault]:
    """Everything found in a draft of a good step s1 and these."""
    return lint(of_steps({"id": "s1"}, *steps, **fields), TOOLS, inputs=inputs)


def errors(*steps: dict[str, Any], **fields: Any) -> list[tuple[str, str, str | None]]:
    """Code, path and fix of each error."""
    return [(fault.code, fault.path, fault.fix) for fault in errors_among(found(*steps, **fields))]


def reading(text: str, **fields: Any) -> list[tuple[str, str | None]]:
    """Code and fix of each error of a step whose argument is this text."""
    return [(code, fix) for code, _, fix in errors({"id": "s2", "args": {"order_id": text}, **fields})]


@pytest.mark.parametrize(
    "text",
    [
        "${s1}",
        "${s1.id}",
        "${s1.lines[0].sku}",
        "${s1.lines[*].sku | [0]}",
        "${s1.lines[?count > `1`].sku}",
        "${s1.note.sku}",
        "${s1.labels.anything}",
        "${s1.missing || @.id}",
        "${inputs}",
        "${inputs.orders}",
        "${inputs.day.deep[0]}",
        "order ${s1.id} of ${inputs.day}",
        "$${s9} and $5 and ${9} and {{name}} and {s1}",
        "a lone ${ and } and $",
        "$${s1 and $${ s1 }",
    ],
)
def test_a_reference_that_can_be_followed_is_no_fault(text: str) -> None:
    """Steps, inputs, parts that the schema has or may have, literal dollars and braces: all fine."""
    assert reading(text) == []


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("${s11.id}", "did you mean ${s1}?"),
        ("${zzzzz.id}", "the steps are s1, s2"),
        ("${get_order.id}", "get_order is a tool; the step that calls it is ${s1}, ${s2}"),
        ("${inputs.order}", "did you mean ${inputs.orders}?"),
        ("${inputs.zzz}", "the inputs are day, orders"),
        ("${inputs.{a: zzz}}", "the inputs are day, orders"),
        ("${item}", "add for_each, or name a step"),
        ("${s1.statsu}", "did you mean 'status'?"),
        ("${s1.zzz}", "it has id, status, lines, note, labels"),
        ("${s1.lines.sku}", None),
        ("${s1.lines[0].zzz}", "it has sku, count"),
        ("${s1.lines[*].zzz}", "it has sku, count"),
        ("${s1.note.zzz}", "it has sku, count"),
        ("${s1.labels.a.b}", None),
        ("${s1[0]}", None),
        ("${s1.id.x}", None),
        ("${s1.[}", None),
        ("${s1 id}", None),
        ("${s1.!x}", None),
        ("${s1 | frobnicate(@)}", None),
        ("${ s1.id }", "write ${s1} (or $${ for the text)"),
        ("${s1.id", "write ${s1} (or $${ for the text)"),
        ("{{s1}}", "write ${s1}"),
        ("{{ s1.id }}", "write ${s1.id}"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named_with_what_was_meant(text: str, fix: str | None) -> None:
    """Unknown steps, inputs and fields, bad paths, and text that only looks like a reference: before anything runs."""
    assert reading(text) == [("UNKNOWN_REFERENCE", fix)]


def test_each_reference_of_a_text_is_judged() -> None:
    """Two faults in one string are two faults; nested places have their path."""
    args = {"order_id": "A", "x": [{"y": "${s8} ${s9}"}]}
    unknown = [fault for fault in errors({"id": "s2", "args": args}) if fault[0] == "UNKNOWN_REFERENCE"]
    assert [path for _, path, _ in unknown] == ["steps[1].args.x[0].y"] * 2


def test_the_answer_and_an_instruction_are_checked_like_arguments() -> None:
    """Everything that is filled in later is looked at now."""
    assert errors(answer="It is ${s9.x}")[0][:2] == ("UNKNOWN_REFERENCE", "answer")
    assert errors(answer="It is ${item}")[0][:2] == ("UNKNOWN_REFERENCE", "answer")
    judge: dict[str, Any] = {"id": "s2", "action": "llm", "tool": None, "args": {}, "instruction": "Judge ${s1.zzz}"}
    assert errors(judge)[0][:2] == ("UNKNOWN_REFERENCE", "steps[1].instruction")


def test_a_foreign_placeholder_inside_a_text_is_only_a_warning() -> None:
    """A letter may hold {{name}}; a text that is nothing but the name of a step would go out as it stands."""
    text = "Dear {{s1}}, hello"
    assert reading(text) == []
    warned = [fault for fault in found({"id": "s2", "args": {"order_id": text}}) if fault.code == "UNKNOWN_REFERENCE"]
    assert [(fault.severity, fault.fix) for fault in warned] == [("warning", "write ${s1}")]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("s1", "write ${s1}"),
        ("$s1.id", "write ${s1.id}"),
        ("<s1>", "write ${s1}"),
        ("s1.lines[0].sku", "write ${s1.lines[0].sku}"),
        ("[s1]", "write ${s1}"),
        ("s2", None),
        ("s9", None),
        ("order s1", None),
        ("$5", None),
        ("A1", None),
        ("s1@example.com", None),
    ],
)
def test_an_argument_that_is_only_the_name_of_a_step_is_worth_a_warning(text: str, fix: str | None) -> None:
    """Small models write names where references were needed; it may be meant, and so refuses nothing."""
    step = {"id": "s2", "args": {"order_id": text}, "depends_on": ["s1"]}
    warned = [(fault.severity, fault.fix) for fault in found(step) if fault.code == "UNKNOWN_REFERENCE"]
    assert warned == ([] if fix is None else [("warning", fix)])


def test_inputs_that_are_not_known_yet_are_not_judged() -> None:
    """A plan file is checked on its own, before anybody has named inputs."""
    step = {"id": "s2", "args": {"order_id": "${inputs.anything}"}}
    assert errors(step, inputs=None) == []
    assert errors(step, inputs=())[0][0] == "UNKNOWN_REFERENCE"


def test_item_exists_in_a_step_that_loops() -> None:
    """The element is there for arguments, instruction and conditions, and not for the list itself."""
    assert errors({**LOOP, "args": {"order_id": "${item.sku}"}, "when": "item.count > `0`"}) == []
    assert errors({**LOOP, "for_each": "${item}"})[0][:2] == ("UNKNOWN_REFERENCE", "steps[1].for_each")
    assert errors({"id": "s2", "when": "item.count > `0`"})[0][:2] == ("UNKNOWN_REFERENCE", "steps[1].when")


def test_the_element_of_a_loop_is_checked_against_the_schema_of_its_list() -> None:
    """What is read of `item` has to be in what the list holds, in arguments and in conditions."""
    assert errors({**LOOP, "args": {"order_id": "${item.sk}"}})[0][2] == "did you mean 'sku'?"
    assert errors({**LOOP, "args": {"order_id": "${item.sku}"}, "when": "item.cont > `0`"})[0][1] == "steps[1].when"
    assert errors({**LOOP, "for_each": "${inputs.orders}", "args": {"order_id": "${item.sk}"}}) == []
    assert errors({**LOOP, "for_each": "${s1.lines[*].sku}", "args": {"order_id": "${item}"}}) == []
    assert errors({**LOOP, "for_each": "${s1.lines[*].sku}", "args": {"order_id": "${item.x}"}})[0][1].endswith("id")


@pytest.mark.parametrize(
    "text", ["s1.lines", "all of ${s1.lines}", "${s1.lines}${s1.lines}", "", "[1, 2]", "${s1.id}", "${s1}"]
)
def test_for_each_is_one_reference_to_a_list(text: str) -> None:
    """Anything else cannot become one step per element."""
    assert ("SCHEMA_INVALID", "steps[1].for_each") in [error[:2] for error in errors({**LOOP, "for_each": text})]


def test_the_result_of_a_loop_is_a_list() -> None:
    """References to a step that loops go through its elements."""
    assert errors(LOOP, {"id": "s3", "args": {"order_id": "${s2[0].id}"}}) == []
    assert errors(LOOP, {"id": "s3", "for_each": "${s2}"}) == []
    assert errors(LOOP, {"id": "s3", "args": {"order_id": "${s2.id}"}})[0][0] == "UNKNOWN_REFERENCE"


@pytest.mark.parametrize("field", ["when", "requires"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("s1.status == 'late'", None),
        ("inputs.day && s1.lines[?sku == 'x' && count > `1`]", None),
        ("length(s1.lines) > `2` || inputs.orders", None),
        ("@", None),
        ("map(&sku, s1.lines)", None),
        ("s11.status", ("UNKNOWN_REFERENCE", "did you mean ${s1}?")),
        ("get_order.status", ("UNKNOWN_REFERENCE", "get_order is a tool; the step that calls it is ${s1}, ${s2}")),
        ("item.x", ("UNKNOWN_REFERENCE", None)),
        ("s1.status ==", ("SCHEMA_INVALID", None)),
        ("s1.count > 2 and true", ("SCHEMA_INVALID", "numbers stand in back-quotes: `2`")),
        (
            "${s1.status} == 'x'",
            ("SCHEMA_INVALID", "a condition is plain JMESPath: write s1.total > `5`, without ${…}"),
        ),
        ("len(s1.lines)", ("SCHEMA_INVALID", None)),
        ("!s1.status", ("SCHEMA_INVALID", None)),
        ("", ("SCHEMA_INVALID", None)),
        ("x" * 3000, ("SCHEMA_INVALID", None)),
        ("s1.statsu == 'late'", ("UNKNOWN_REFERENCE", "did you mean 'status'?")),
        ("length(s1.lins) > `2`", ("UNKNOWN_REFERENCE", "did you mean 'lines'?")),
        ("s1.lines[?cont > `1`].sku | length(@) > `0`", ("UNKNOWN_REFERENCE", "did you mean 'count'?")),
        ("contains(s1.lines[?cont > `1`].sku, 'a')", ("UNKNOWN_REFERENCE", "did you mean 'count'?")),
        ("s1.statsu || s1.statsu == `null` || !(s1.statsu) || not_null(s1.statsu, 'a')", None),
        ("s1.statsu && s1.status == `null`", None),
        ("s1.labels.late == true", ("SCHEMA_INVALID", "write `true`, with back-quotes")),
        ("s1.labels.late == `true`", None),
        ("s1.status == null", ("SCHEMA_INVALID", "write `null`, with back-quotes")),
        ("true", ("SCHEMA_INVALID", "write `true`, with back-quotes")),
        ("(" * 900 + "s1" + ")" * 900, ("SCHEMA_INVALID", None)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_condition_is_jmespath_over_what_is_there(
    field: str, text: str, fault: tuple[str, str | None] | None
) -> None:
    """Conditions read steps and inputs by name; what is no JMESPath, or names what is not there, is refused."""
    expected = [] if fault is None else [(fault[0], f"steps[1].{field}", fault[1])]
    assert errors({"id": "s2", field: text}) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("status == 'late'", None),
        ("length(lines) > `0`", None),
        ("zzz == null", None),
        ("@", None),
        ("statsu", ("UNKNOWN_REFERENCE", "did you mean 'status'?")),
        ("statsu == 'late'", ("UNKNOWN_REFERENCE", "did you mean 'status'?")),
        ('status == "shipped"', ("UNKNOWN_REFERENCE", "for a text write 'shipped', in single quotes")),
        ("true", ("SCHEMA_INVALID", "write `true`, with back-quotes")),
        ("length(lines[?sku != 'a'].zzz) > `0`", ("UNKNOWN_REFERENCE", "it has sku, count")),
        ("labels.ok == false", ("SCHEMA_INVALID", "write `false`, with back-quotes")),
        ("lines[0].zzz", ("UNKNOWN_REFERENCE", "it has sku, count")),
        ("status =", ("SCHEMA_INVALID", "write == to compare")),
        ("status == 'a' and id", ("SCHEMA_INVALID", "write && for and")),
        ("!status.x", ("SCHEMA_INVALID", None)),
    ],
)
def test_a_criterion_is_jmespath_over_the_result(text: str, fault: tuple[str, str | None] | None) -> None:
    """`success_when` reads the step's own result; a path that its schema rules out could never be true."""
    expected = [] if fault is None else [(fault[0], "steps[1].success_when", fault[1])]
    assert errors({"id": "s2", "success_when": text}) == expected


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, None),
        ({"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"type": "integer"}}}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, None),
        ({"enum": [{"$ref": "x"}], "default": {"pattern": "("}}, None),
        ({"type": "strin"}, "no JSON schema"),
        ({"properties": []}, "no JSON schema"),
        ({"required": "a"}, "no JSON schema"),
        ({"$ref": "#/$defs/b", "$defs": {"a": True}}, "not in it"),
        ({"properties": {"a": {"$ref": "http://example.com/x"}}}, "not in it"),
        ({"$ref": "file:///etc/passwd"}, "not in it"),
        ({"$schema": "http://example.com/own"}, "uses \\$schema"),
        ({"$id": "http://example.com/own"}, "uses \\$id"),
        ({"pattern": "("}, "no JSON schema"),
        ({"patternProperties": {"[": {}}}, "no JSON schema"),
    ],
)
def test_an_output_schema_is_a_json_schema_that_needs_nothing_else(schema: dict[str, JSON], said: str | None) -> None:
    """It is checked before a model is asked for it, and never makes anything be fetched."""
    problem = schema_problem(schema)
    assert (problem is None) == (said is None)
    if said is not None and problem is not None:
        assert re.search(said, problem)
        faults = errors({"id": "s2", "output_schema": schema})
        assert ("SCHEMA_INVALID", "steps[1].output_schema") in [fault[:2] for fault in faults]


def test_a_reference_is_checked_against_the_schema_a_step_brings() -> None:
    """A step's own output_schema says what may be read from it, before the tool's."""
    judge = {
        "id": "s2",
        "action": "llm",
        "tool": None,
        "args": {},
        "instruction": "Judge ${s1}",
        "output_schema": {"type": "object", "properties": {"late": {"type": "boolean"}}},
    }
    assert errors(judge, {"id": "s3", "args": {"order_id": "${s2.late}"}}) == []
    assert errors(judge, {"id": "s3", "args": {"order_id": "${s2.lat}"}})[0][2] == "did you mean 'late'?"
