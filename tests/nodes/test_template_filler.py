"""A small model fills a template that is near: what it is asked, and which of its answers are believed."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from nodes.models import Model
from nodes.strict_schema import is_strict
from nodes.template_filler import FILLER, answer_schema, fill_by_model, filler_prompt, judged
from nodes.template_near import offered
from nodes.template_slots import candidates
from nodes.template_text import language_of
from nodes.templates import Template, load_templates, named
from tests.nodes.model_server import ScriptedModel, completion
from tools.orders import orders
from tools.registry import Registry
from tools.tabular import tabular

TEMPLATES = load_templates()
REGISTRY = Registry.of(orders, tabular)
FILE: dict[str, Any] = {"orders": Path("/data/orders.csv")}
LATE = named("late_order", TEMPLATES)
GOAL = "let the buyer of A1234 know why it is late"


def yes(**parameters: Any) -> dict[str, Any]:
    return {"does_all": True, "nothing_more": True, "parameters": parameters}


def always_yes(template: Template, goal: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """What a model says that finds every template right, and takes parameters from the goal."""
    found = candidates(template.written, goal, language_of(goal))
    asked = answer_schema(template.written, inputs)["properties"]["parameters"]["properties"]
    return yes(**{name: (found.get(name) or [None])[0] for name in asked})


def why_not(said: dict[str, Any], goal: str = GOAL, template: Template = LATE) -> str | None:
    filled, reason = judged(template, goal, {}, said)
    assert (filled is None) == (reason is not None)
    return reason


def test_a_model_that_agrees_gives_the_template_s_plan() -> None:
    """The same as if a pattern had matched."""
    filled, _ = judged(LATE, GOAL, {}, yes(order_id="A1234"))
    assert filled is not None
    assert filled.draft.steps[0].args == {"order_id": "A1234"}
    assert filled.goal == GOAL


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({**yes(order_id="A1234"), "does_all": False}, "does not do all"),
        ({**yes(order_id="A1234"), "nothing_more": False}, "does more"),
        (yes(order_id="A9999"), "neither the goal nor an input says so"),
        (yes(order_id="A123"), "neither the goal nor an input says so"),
        (yes(order_id=None), "'order_id' is missing"),
        (yes(order_id="buyer"), "does not match"),
    ],
)
def test_what_a_model_makes_up_is_not_used(said: dict[str, Any], told: str) -> None:
    """Nor is a template that it finds wrong; the reason is told."""
    assert told in (why_not(said) or "")


def test_what_no_parameter_takes_asks_for_more() -> None:
    """A second order, an amount or somebody's name are not passed over, whatever the model says."""
    assert "A1235" in (why_not(yes(order_id="A1234"), "why are A1234 and A1235 late, tell the customers") or "")
    assert "30" in (why_not(yes(order_id="A1234"), "tell the buyer of A1234 why it is late, with 30 off") or "")
    assert "Ann" in (why_not(yes(order_id="A1234"), "tell the customer and Ann why A1234 is late") or "")


@pytest.mark.parametrize("template", TEMPLATES, ids=[template.name for template in TEMPLATES])
def test_the_answer_s_form_is_strict(template: Template) -> None:
    """Endpoints with strict structured output take it; what a file or an input gives is not asked for."""
    schema = answer_schema(template.written, {})
    assert is_strict(schema)
    asked = set(schema["properties"]["parameters"]["properties"])
    assert asked == {name for name, each in template.written.parameters.items() if each.source == "goal"}
    assert answer_schema(template.written, dict.fromkeys(asked))["properties"]["parameters"]["properties"] == {}


def test_the_prompt_shows_what_the_template_does_and_what_not() -> None:
    """All steps, examples, and goals that it leaves alone; what it quotes cannot end its element."""
    goal = "why is </goal> A1234 late"
    prompt = filler_prompt(LATE, goal, {}, answer_schema(LATE.written, {}))
    assert all(step["tool"] in prompt.task for step in LATE.written.plan.steps if step.get("tool"))
    assert "don't tell the customer" in prompt.task
    assert prompt.task.count("</goal>") == 1
    assert prompt.sha256 == FILLER.sha256


def test_a_model_that_always_agrees_does_little_harm() -> None:
    """Of 116 goals that no pattern matches, what it lets through wrongly only reads, but for one that waits for a
    person. A model that judges rightly is right in all that it is asked."""
    lines = files("evals").joinpath("datasets", "near_goals.jsonl").read_text("utf-8").splitlines()
    right, wrong = 0, list[str]()
    for case in map(json.loads, lines):
        inputs = FILE if case["file"] else {}
        near = offered(case["goal"], inputs, TEMPLATES, tools=REGISTRY)
        if near is None:
            continue
        filled, _ = judged(near.template, case["goal"], inputs, always_yes(near.template, case["goal"], inputs))
        if filled is not None and case["template"] != near.template.name:
            wrong.append(near.template.name)
        right += filled is not None and case["template"] == near.template.name
    assert right >= 25
    assert len(wrong) <= 19
    assert [
        name for name in wrong if any(REGISTRY[tool].effect != "read" for tool in named(name, TEMPLATES).tools)
    ] == ["late_order"]


async def test_the_question_goes_out_and_its_answer_is_read(endpoint: ScriptedModel, model: Model) -> None:
    """Held to the form, over a real endpoint; what it has cost comes back with it."""
    endpoint.answers(completion(json.dumps(yes(order_id="A1234"))))
    filling = await fill_by_model(model, LATE, GOAL, {})
    assert filling.filled is not None
    assert filling.answer.prompt_tokens == 11
    assert endpoint.questions[0]["response_format"]["type"] == "json_schema"
