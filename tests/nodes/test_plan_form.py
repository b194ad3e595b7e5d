"""The form of a planner's answer: OpenAI's strict mode takes it for any tools, and a plan comes out of it whole."""

from __future__ import annotations

import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from nodes.model_modes import MODES, Mode, parameters
from nodes.models import Model
from nodes.plan_form import PLAN_SCHEMA, PlanForm
from nodes.planner import draft_plan
from nodes.strict_schema import is_strict
from plans.faults import errors_among
from plans.lint import lint
from plans.reader import read_plan
from tests.nodes.model_server import Question, ScriptedModel, completion, refused
from tests.nodes.openai_rules import complaints
from tools.orders.toolkit import orders
from tools.registry import Toolkit
from tools.tabular.toolkit import tabular
from tools.tool import Tool


class Line(BaseModel):
    """One line of an order, which may hold others."""

    item: str
    count: int = 1
    gift: bool | None = None
    parts: list[Line] = []


kit = Toolkit("odd")


@kit.tool(effect="read")
def plain(text: str, many: int = 3, kind: Literal["a", "b"] = "a", note: str | None = None) -> str:
    """Scalars, some of which may be left out."""
    return text


@kit.tool(effect="read")
def nested(lines: list[Line], where: dict[str, str], extra: dict[str, Any] | None = None) -> int:
    """Objects in lists, open objects, a definition that refers to itself."""
    return 1


@kit.tool(effect="read")
def nothing() -> int:
    """No argument at all."""
    return 1


kit.add(lambda **_: 1, name="open", description="Takes anything.", effect="read", args_schema={"type": "object"})
kit.add(
    lambda **_: 1,
    name="foreign",
    description="As other servers describe theirs.",
    effect="read",
    args_schema={
        "type": "object",
        "properties": {
            "mixed": {"type": ["string", "integer", "null"]},
            "one": {"oneOf": [{"const": 5}, {"enum": ["x", None, 2.5, True]}]},
            "tuple": {"type": "array", "prefixItems": [{"type": "string"}]},
            "any": {},
            "named": {"type": "object", "patternProperties": {"^x": {"type": "integer"}}},
            "all": {"allOf": [{"type": "string", "minLength": 3}]},
            "bounded": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "format": "int32"},
        },
        "required": ["mixed"],
    },
)
ODD = list(kit.tools.values())

NATURAL: dict[str, Any] = {
    "goal": "g",
    "steps": [
        {"id": "s1", "title": "t", "reason": "r", "action": "tool", "tool": "plain",
         "args": {"text": "x", "many": "${inputs.n}", "note": None}, "depends_on": []},
        {"id": "s2", "title": "t", "reason": "r", "action": "tool", "tool": "nested", "depends_on": ["s1"],
         "args": {"lines": [{"item": "ball", "count": 2, "gift": None, "parts": [{"item": "skin", "gift": None}]},
                            {"item": "cup", "gift": None}],
                  "where": {"city": "${s1}"}, "extra": {"deep": [1, {"er": None}], "flag": True}}},
        {"id": "s3", "title": "t", "reason": "r", "action": "tool", "tool": "nothing", "args": {}, "depends_on": []},
        {"id": "s4", "title": "t", "reason": "r", "action": "tool", "tool": "open", "args": {"q": "v"},
         "depends_on": []},
        {"id": "s5", "title": "t", "reason": "r", "action": "llm", "instruction": "Judge ${s4}.", "depends_on": [],
         "output_schema": {"type": "object", "additionalProperties": False, "required": ["ok", "why"],
                           "properties": {"ok": {"type": "boolean"},
                                          "why": {"type": "array", "items": {"type": "string"}}}}},
        {"id": "s6", "title": "t", "reason": "r", "action": "llm", "instruction": "Write.", "output_schema": None,
         "depends_on": []},
    ],
    "answer": "done",
}  # fmt: skip


def pairs(**values: Any) -> dict[str, Any]:
    """An open object as strict mode has it written."""
    return {"name_value_pairs": [{"name": name, "value": value} for name, value in values.items()]}


def strict() -> dict[str, Any]:
    """The same plan as a model writes it that is held to the form."""
    plan: dict[str, Any] = json.loads(json.dumps(NATURAL))
    tools, llms = plan["steps"][:4], plan["steps"][4:]
    for step in plan["steps"]:
        step |= {"for_each": None, "when": None}
    for step in tools:
        step["success_when"] = None
    tools[0]["args"]["kind"] = None
    ball, cup = tools[1]["args"]["lines"]
    ball["parts"][0] |= {"count": None, "parts": None}
    cup |= {"count": None, "parts": None}
    tools[1]["args"]["where"] = pairs(city="${s1}")
    tools[1]["args"]["extra"] = pairs(deep=[1, pairs(er=None)], flag=True)
    tools[3]["args"] = pairs(q="v")
    for step in llms:
        fields = [{"name": "ok", "type": "boolean"}, {"name": "why", "type": "texts"}]
        step["output_fields"] = fields if step.pop("output_schema") else None
    return plan


@pytest.mark.parametrize(
    "tools", [[], ODD, *([tool] for tool in ODD), list(tabular.tools.values()), list(orders.tools.values())]
)
def test_strict_mode_takes_the_form_of_any_tools(tools: list[Tool]) -> None:
    """By OpenAI's rules, checked apart from ours; it is a JSON schema, and goes out as strict in both modes."""
    form = PlanForm(tools)
    assert complaints(dict(form.schema)) == []
    assert form.is_strict
    jsonschema.Draft202012Validator.check_schema(form.schema)
    sent = parameters("json_schema", form.schema)["extra_body"]["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert parameters("tools", form.schema)["tools"][0]["function"]["strict"] is True


def test_more_tools_than_strict_mode_takes_are_asked_for_plainly() -> None:
    """A schema that would be refused is not sent as strict; the plan's own form is."""
    many = Toolkit("many")
    for number in range(600):
        many.add(lambda **_: 1, name=f"t{number}", description="d", effect="read", args_schema={"type": "object"})
    form = PlanForm(many.tools.values())
    assert form.schema is PLAN_SCHEMA
    assert parameters("json_schema", form.schema)["extra_body"]["response_format"]["json_schema"]["strict"] is False
    assert form.restored(strict()) == strict()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}, "required": []},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": True}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"],
         "additionalProperties": False},
        {"anyOf": [{"type": "object", "properties": {}, "required": [], "additionalProperties": False}]},
        {"type": "array", "items": {"type": "string"}},
    ],
)  # fmt: skip
def test_what_strict_mode_refuses_is_not_sent_as_strict(schema: dict[str, Any]) -> None:
    """A step's own schema may be anything; it is asked for as it is, and checked when the answer is here."""
    assert not is_strict(schema)


def test_a_plan_comes_back_out_of_its_form() -> None:
    """What the form makes a model write (pairs, nulls, fields) becomes the plan that was meant, and nothing else."""
    written = strict()
    jsonschema.validate(written, PlanForm(ODD).schema)
    restored = PlanForm(ODD).restored(written)
    assert isinstance(restored, dict)
    without = [
        {name: value for name, value in step.items() if name not in ("for_each", "when", "success_when")}
        for step in restored["steps"]
    ]
    expected = json.loads(json.dumps(NATURAL))
    assert {**restored, "steps": without} == expected
    reading = read_plan(json.dumps(written), form=PlanForm(ODD).restored)
    assert (reading.repaired, reading.faults) == (False, ())
    assert reading.draft is not None
    assert errors_among(lint(reading.draft, kit.tools, inputs=("n",))) == []


def test_a_plan_in_its_own_form_stays_as_it_is() -> None:
    """A model that was not held to the form, or an endpoint that pays no heed to it, writes the plan directly."""
    assert PlanForm(ODD).restored(NATURAL) == NATURAL


@pytest.mark.parametrize(
    "args",
    [
        {"name_value_pairs": [{"name": "q", "value": 1}, {"name": "q", "value": 2}]},
        {"name_value_pairs": [{"name": "q", "value": 1, "more": 2}]},
        {"name_value_pairs": [{"name": 1, "value": 1}]},
        {"name_value_pairs": "q"},
        {"name_value_pairs": [], "q": 1},
    ],
)
def test_what_fits_no_rule_is_left_to_be_found(args: Any) -> None:
    """A name that stands twice, among others: no value is chosen."""
    plan = {"goal": "g", "steps": [{"id": "s1", "tool": "open", "args": args}]}
    assert PlanForm(ODD).restored(plan) == plan


def test_a_field_that_stands_twice_is_a_fault() -> None:
    """Of two fields with one name none is chosen, and the plan is refused."""
    step = {"id": "s", "action": "llm", "instruction": "i", "output_fields": [{"name": "a", "type": "text"}] * 2}
    reading = read_plan(json.dumps({"goal": "g", "steps": [step]}), form=PlanForm(ODD).restored)
    assert [fault.code for fault in reading.faults] == ["SCHEMA_INVALID"]


KEYS = st.sampled_from(
    ["goal", "steps", "tool", "args", "name_value_pairs", "name", "value", "output_fields", "lines", "where", "x"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["plain", "nested", "open", "foreign", "text", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)


@given(VALUES)
def test_anything_can_be_restored(value: Any) -> None:
    """Whatever a model wrote, restoring raises nothing and leaves what it was given alone."""
    before = json.dumps(value)
    PlanForm(ODD).restored({"goal": "g", "steps": [value, {"tool": "foreign", "args": value, "output_fields": value}]})
    PlanForm(ODD).restored(value)
    assert json.dumps(value) == before


@pytest.mark.parametrize("mode", MODES)
async def test_an_endpoint_as_strict_as_openai_takes_our_question(
    model: Model, endpoint: ScriptedModel, mode: Mode
) -> None:
    """In each mode the plan that was meant is drafted; a schema that breaks a rule would be answered with 400."""

    def exacting(question: Question) -> Any:
        if "response_format" in question:
            if mode != "json_schema":
                return refused(400, "response_format is not supported")
            held = question["response_format"]["json_schema"]
            return refused(400, str(found)) if (found := complaints(held["schema"])) else completion(written)
        if "tools" in question:
            if mode != "tools":
                return refused(400, "tools are not supported")
            found = complaints(question["tools"][0]["function"]["parameters"])
            return refused(400, str(found)) if found else completion(None, calls=[("answer", written)])
        return completion(json.dumps(NATURAL))

    written = json.dumps(strict())
    endpoint.answers(exacting)
    planned = await draft_plan(model, "g", {"n": 1}, ODD)
    assert (planned.answer.mode, planned.reading.faults) == (mode, ())
    assert planned.reading.draft is not None
    assert planned.reading.draft == read_plan(json.dumps(NATURAL)).draft
