"""Whatever is done to a right plan, by structure, by text or by byte: it is valid still, or what is wrong is said."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plans.faults import errors_among
from plans.lint import build_plan, lint_reading
from plans.plan import Plan, StepDraft, highest_risk
from plans.reader import read_plan
from plans.schedule import in_order
from tests.plans.sample import TOOLS, values

RICH: dict[str, Any] = {
    "goal": "tell everybody whose order is late",
    "steps": [
        {"id": "s1", "title": "Find them", "action": "tool", "tool": "list_orders", "depends_on": [], "reason": "first",
         "args": {"status": "late", "limit": 5}, "verify_after": True},
        {"id": "s2", "action": "tool", "tool": "get_order", "args": {"order_id": "${item.id}"}, "for_each": "${s1}",
         "when": "length(s1) > `0`", "success_when": "status != `null`", "on_dependency_failure": "skip"},
        {"id": "s3", "action": "llm", "instruction": "Write about ${s2}.", "depends_on": ["s1"],
         "output_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
        {"id": "s4", "action": "tool", "tool": "send_reply", "risk": "high", "require_approval": True, "timeout_s": 5,
         "args": {"order_id": "A1", "body": "${s3.text} costs $${5}"}, "requires": "inputs.orders"},
        {"id": "s5", "action": "plan", "instruction": "Find out what ${s4} led to.", "depends_on": ["s4"]},
    ],
    "answer": "told: ${s3.text}",
}  # fmt: skip
TEXT = json.dumps(RICH, ensure_ascii=False)
WORDS = st.sampled_from(
    ["s1", "s2", "s9", "item", "inputs", "get_order", "nope", "", "${", "${s1}", "${s9.x}", "${s4}", "tool", "llm",
     "plan", "depends_on", "args", "steps", "\x00", "\ud800", "[", "length(", "${s2[0", "$${", "id", "goal"]
)  # fmt: skip
ANYTHING = WORDS | values | st.just(float("nan")) | st.integers(2**70, 2**71)


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value."""
    yield here
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*here, key))


def at(plan: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place. LookupError or TypeError if there is none."""
    for part in path:
        plan = plan[part]
    return plan


def changed(plan: Any, place: tuple[Any, ...], how: str, word: str, value: Any, other: tuple[Any, ...]) -> None:
    """One change: something removed, replaced, doubled, renamed, or put in another place."""
    holder, last = at(plan, place[:-1]), place[-1]
    if how == "remove":
        del holder[last]
    elif how == "replace":
        holder[last] = value
    elif how == "retype":
        holder[last] = RETYPED[len(word) % len(RETYPED)](holder[last])
    elif how == "move":
        with contextlib.suppress(LookupError, TypeError):  # the place is in what was moved
            at(plan, other[:-1])[other[-1]] = copy.deepcopy(holder[last])
    elif isinstance(holder, list):
        holder.insert(last, copy.deepcopy(holder[last]))
    else:
        holder[word] = value if how == "add" else holder.pop(last)


HOWS = st.sampled_from(["remove", "replace", "add", "rename", "move", "retype"])
RETYPED: tuple[Callable[[Any], Any], ...] = (
    str, json.dumps, lambda value: [value], lambda value: {"value": value}, lambda value: None, bool,
    lambda value: [value] * 3,
)  # fmt: skip
"""A value as one of another type, as models write it."""


@st.composite
def mutated(draw: st.DrawFn, base: Any) -> Any:
    """A plan after one to four changes."""
    plan: Any = copy.deepcopy(base)
    hows = draw(st.lists(HOWS, min_size=1, max_size=4))
    for how in hows:
        if not (found := [place for place in places(plan) if place]):
            break
        place, other = draw(st.sampled_from(found)), draw(st.sampled_from(found))
        changed(plan, place, how, draw(WORDS), draw(ANYTHING), other)
    return plan


def judged(text: str, tools: Mapping[str, Any] = TOOLS) -> None:
    """The claim: a plan that can be stored and run, or at least one fault that says where and what."""
    reading = read_plan(text, "stop")
    faults = lint_reading(reading, tools, inputs=("orders",))
    errors = errors_among(faults)
    assert all(fault.message and str(fault).isprintable() for fault in faults)
    if reading.draft is None:
        assert errors
        return
    assert reading.faults == ()
    if not errors:
        plan = build_plan(reading.draft, tools, plan_id="p", revision=1, source="model")
        assert Plan.model_validate_json(plan.model_dump_json()) == plan
        assert set(in_order({step.id: step.depends_on for step in plan.steps})) == {step.id for step in plan.steps}
        assert all(highest_risk(step.risk, tools[step.tool].risk) == step.risk for step in plan.steps if step.tool)


def test_the_plan_is_right_before_anything_is_done_to_it() -> None:
    """Else the mutations would prove nothing; and it uses every field that an author has."""
    reading = read_plan(TEXT)
    assert reading.draft is not None
    assert errors_among(lint_reading(reading, TOOLS, inputs=("orders",))) == []
    judged(TEXT)
    written = {name for step in RICH["steps"] for name in step}
    assert set(StepDraft.model_fields) == written


@given(mutated(RICH))
def test_a_plan_changed_in_its_structure_is_valid_or_reported(plan: Any) -> None:
    """Fields and steps that are gone, doubled, renamed, moved or of another type."""
    judged(json.dumps(plan, ensure_ascii=False))


@given(st.data())
def test_a_plan_changed_in_its_text_is_valid_or_reported(data: st.DataObject) -> None:
    """Pieces cut out, put in or moved, as an editor or a model would."""
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        piece = data.draw(WORDS | st.sampled_from(list('{}[]",:\\\'`#/* \n\t')) | st.text(max_size=6) | st.just(text[start:end] * 2))  # fmt: skip  # noqa: E501
        text = text[:start] + piece + text[end:]
    judged(text)


@given(st.lists(st.tuples(st.integers(0, len(TEXT.encode()) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_plan_changed_in_its_bytes_is_valid_or_reported(changes: list[tuple[int, int]]) -> None:
    """Bytes that were damaged, read as a careless program reads them: with lone surrogates or as other characters."""
    body = bytearray(TEXT.encode())
    for place, byte in changes:
        body[place] = byte
    for encoding, errors in (("utf-8", "surrogateescape"), ("utf-8", "replace"), ("latin-1", "strict"), ("utf-16-le", "replace")):  # fmt: skip  # noqa: E501
        judged(bytes(body).decode(encoding, errors))
