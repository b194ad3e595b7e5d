"""What models write around and into a plan: syntax is repaired where one reading is left, meaning never."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plans.loose_json import Broken, Cut, LooseParser
from plans.reader import read_plan
from plans.values import JSON, canonical
from tests.plans.sample import DRAFT, PLAN, TEXT, plan, values, with_step

FENCE = "```"
OTHER = json.dumps(plan(goal="another"))
STEP = json.dumps(PLAN["steps"][0])


def loose(text: str) -> JSON:
    """What the tolerant parser makes of a text."""
    return LooseParser(text).read()


@pytest.mark.parametrize(
    "text",
    [
        f"{FENCE}json\n{TEXT}\n{FENCE}",
        f"{FENCE}\n{TEXT}\n{FENCE}",
        f"{FENCE}JSON\r\n{TEXT}\r\n{FENCE}\r\n",
        f"~~~\n{TEXT}\n~~~",
        f"{FENCE}json\n{TEXT}",
        f"{FENCE}json {TEXT} {FENCE}",
        f"{FENCE}json\n{json.dumps(PLAN, indent=2)}\n{FENCE}\nThat is all.",
        f"Here is the plan: {TEXT} Good luck {{ok}}",
        f"Call get_order() first [1], then {{reply}}.\n\n{TEXT}\n\n[1] see the manual",
        f"计划如下：{TEXT}。请确认。",
        f"{TEXT}}}",
        f"{TEXT};",
        f"\ufeff{TEXT}",
        f"<think>First {OTHER} came to mind, {{no}}.</think>\n{TEXT}",
        f'<think>\nhm "{{\n</think>\n{FENCE}json\n{TEXT}\n{FENCE}',
        f"The draft was {OTHER} but no.\n</think>\n\n{TEXT}",
        f"<THINKING>{OTHER}</THINKING>{TEXT}",
        TEXT[:-1] + ",}",
        TEXT.replace("}]", "},]").replace("[]", "[ ]"),
        "{// the goal\n" + TEXT[1:],
        '{/* the goal\n {"goal": 1} */' + TEXT[1:],
        TEXT.replace(', "steps"', ', # now\n"steps"'),
        TEXT.replace('"goal":', '"goal"：').replace(', "steps"', '，"steps"'),
        str(PLAN),
        TEXT.replace('"goal":', "goal:").replace('"steps":', "steps :"),
        json.dumps(TEXT),
        json.dumps(plan(steps=json.dumps(PLAN["steps"]))),
        json.dumps(plan(steps=[json.dumps(step) for step in PLAN["steps"]])),
        json.dumps(
            plan(
                steps=[
                    {**step, "args": json.dumps(step["args"]), "depends_on": json.dumps(step["depends_on"])}
                    for step in PLAN["steps"]
                ]
            )
        ),
    ],
    ids=lambda text: text[:30],
)
def test_a_plan_in_disguise_is_the_plan_and_is_marked(text: str) -> None:
    """Fences, prose, thoughts and slips of syntax change nothing of the plan, and it is seen that they were there."""
    reading = read_plan(text, "stop")
    assert (reading.draft, reading.faults) == (DRAFT, ())
    assert reading.repaired is True


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{TEXT}\n{TEXT}", "PLAN_AMBIGUOUS"),
        (f"{FENCE}json\n{TEXT}\n{FENCE}\nBetter:\n{FENCE}json\n{OTHER}\n{FENCE}", "PLAN_AMBIGUOUS"),
        (f"Draft: {OTHER} Final: {TEXT}", "PLAN_AMBIGUOUS"),
        (f"{TEXT} and then also {STEP}", "PLAN_AMBIGUOUS"),
        (f"{TEXT}, {STEP}]}}", "PLAN_AMBIGUOUS"),
        (f"[{TEXT}, {OTHER}]", "PLAN_AMBIGUOUS"),
        (f"{FENCE}\n[{TEXT}, {OTHER},]\n{FENCE}", "PLAN_AMBIGUOUS"),
        (TEXT[:-1], "PLAN_TRUNCATED"),
        (TEXT[:-2], "PLAN_TRUNCATED"),
        (TEXT[:40], "PLAN_TRUNCATED"),
        ("{", "PLAN_TRUNCATED"),
        (f"{FENCE}json\n{TEXT[:-1]}\n{FENCE}", "PLAN_TRUNCATED"),
        (f"{FENCE}json\n{TEXT[:-1]}\n{FENCE}\nor\n{FENCE}json\n{OTHER}\n{FENCE}", "PLAN_TRUNCATED"),
        (f"{FENCE}json\n{TEXT[:-30]}", "PLAN_TRUNCATED"),
        (f"Here it is: {TEXT[:-1]}", "PLAN_TRUNCATED"),
        (f"{TEXT} A better one: {OTHER[:50]}", "PLAN_TRUNCATED"),
        (f"<think>{TEXT}", "PLAN_TRUNCATED"),
        ('{"goal": "g", "steps": [{"id": "s1", "tool": "get_order}]}', "PLAN_TRUNCATED"),
        (TEXT.replace("}, {", "} {"), "PLAN_SYNTAX"),
        (TEXT.replace('"goal": ', '"goal" '), "PLAN_SYNTAX"),
        (TEXT.replace("}]}", "}}]"), "PLAN_SYNTAX"),
        (TEXT.replace("}]}", "}}"), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', '"say "{hi}" now"'), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', r'"a\d"'), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', "'it's'"), "PLAN_SYNTAX"),
        (TEXT.replace('"g",', '"g",,'), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', "g"), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', "+5"), "PLAN_SYNTAX"),
        (TEXT.replace('"g"', "1_000"), "PLAN_SYNTAX"),
        (f'{{"note": "say "{TEXT}" now"}}', "PLAN_SYNTAX"),
        (f'{{"note": "\\q {TEXT}"}}', "PLAN_SYNTAX"),
        (f'I call it with {{"order_id": <id>}}. {TEXT}', "PLAN_SYNTAX"),
        ("<tool_call>get_order(order_id='A1')</tool_call>", "PLAN_SYNTAX"),
        ('Either {"a": 1} or {"b": 2}.', "PLAN_SYNTAX"),
        (f'{FENCE}json\n{{"error": "cannot"}}\n{FENCE}', "SCHEMA_INVALID"),
        (f"{FENCE}json\n[{STEP}]\n{FENCE}", "SCHEMA_INVALID"),
        (f"{FENCE}json\n{json.dumps(plan(steps=[]))}\n{FENCE}", "PLAN_EMPTY"),
        (f"{FENCE}json\n" + TEXT.replace('"A1"', "NaN") + f"\n{FENCE}", "PLAN_SYNTAX"),
        (TEXT.replace('"goal": "g"', '"goal": "g", goal: "h"'), "DUPLICATE_KEY"),
        (json.dumps(with_step(0, args='{"order_id": "A1", "order_id": "A2"}')), "DUPLICATE_KEY"),
        (json.dumps(with_step(0, args="order_id=A1")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, args='["A1"]')), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, depends_on="s2, s3")), "SCHEMA_INVALID"),
        (json.dumps(with_step(0, args='{"order_id": "A1"')), "SCHEMA_INVALID"),
    ],
    ids=lambda text: text[:40],
)
def test_what_would_need_a_guess_is_refused(text: str, code: str) -> None:
    """Two plans, a plan that breaks off, a slip with two readings: nothing is chosen, completed or dropped."""
    reading = read_plan(text, "stop")
    assert reading.draft is None
    assert code in {fault.code for fault in reading.faults}


@given(st.integers(1, len(TEXT) - 1), st.sampled_from(["", f"{FENCE}json\n", "Here: ", "<think>a</think>"]))
def test_no_beginning_of_a_plan_is_ever_a_plan(length: int, before: str) -> None:
    """Wherever the text ends, a plan that has begun is cut off, not shorter."""
    reading = read_plan(before + TEXT[:length])
    assert [fault.code for fault in reading.faults] == ["PLAN_TRUNCATED"]


@given(st.integers(1, len(TEXT) - 1))
def test_no_end_of_a_plan_is_ever_a_plan(start: int) -> None:
    """A text that has lost its beginning does not become a plan of fewer steps."""
    assert read_plan(TEXT[start:]).draft is None


@given(values)
def test_the_tolerant_reader_agrees_with_the_strict_one(value: JSON) -> None:
    """On JSON as it should be, both readers give the same value, to the type."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert canonical(loose(text)) == canonical(value)


@given(values)
def test_what_python_prints_is_read_as_what_it_was(value: JSON) -> None:
    """Single quotes, True, False and None: a plan printed by Python means the same."""
    text = repr(value)
    assume("\\x" not in text and "\\U" not in text and "\\u" not in text)
    assert canonical(loose(text)) == canonical(value)


@given(st.text(st.characters(exclude_characters='\\"', exclude_categories=["Cs"])))
def test_strings_are_taken_character_by_character(text: str) -> None:
    """Line breaks, tabs, comments, brackets and trailing commas inside a string are the string."""
    assert loose(f'["{text}"]') == [text]
    assert loose('["// no, /* no */ # no, ,] <think> “”："]') == ["// no, /* no */ # no, ,] <think> “”："]


def test_a_single_quoted_string_keeps_its_quotes_and_escapes() -> None:
    """Double quotes inside single ones are characters; an escaped apostrophe is one; other escapes are JSON's."""
    assert loose(r"""['say "hi"', 'it\'s', 'a\\', 'a\n\u00e9']""") == ['say "hi"', "it's", "a\\", "a\né"]


@pytest.mark.parametrize("text", ["{", "[", '"a', "'a", '{"a"', '{"a":', '{"a":1', "[1,", "[1", '["a', "", "// only"])
def test_a_value_that_ends_early_is_cut(text: str) -> None:
    """The end of the text inside a value is told apart from a mistake in it."""
    with pytest.raises(Cut):
        loose(text)


@pytest.mark.parametrize(
    "text", ["]", "{,}", "[,]", "{1:2}", "[1 2]", '{"a" 1}', "nul", "tru", "01", "-", "1.", ".5", "1e", "--1", "$"]
)
def test_what_fits_no_rule_is_broken(text: str) -> None:
    """A mistake is refused where it stands."""
    with pytest.raises(Broken):
        loose(text + " ")


def test_repair_of_hostile_text_takes_linear_time() -> None:
    """Half a megabyte of anything is dealt with in seconds: nothing rescans what it has seen."""
    pieces = [
        "{",
        '{"',
        '{"a":',
        '{"a":[',
        "[{",
        '\\"',
        '"',
        "'",
        "/*",
        "//",
        "<think>",
        "</think>",
        "{a:1}",
        '{"goal":1}',
        "{{",
        '{"a":1,{',
        "`" * 3 + "\n",
        "[{'a':",
        "-",
        "9",
        "#",
    ]
    started = time.process_time()
    for piece in pieces:
        assert read_plan(piece * (500_000 // len(piece))).draft is None
    assert time.process_time() - started < 30
