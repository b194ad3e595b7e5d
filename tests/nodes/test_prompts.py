"""Prompt files: rendered strictly, known by hash, and safe to put strangers' texts into."""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.prompts import bounded, load, quoted, read
from plans.references import parse

NAMES = sorted(file.name.removesuffix(".md") for file in files("nodes").joinpath("prompts").iterdir())
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_there_are_prompts_for_each_call() -> None:
    """Filler, planner, replanner, judge and verifier each have their file; a stray one would be shipped unseen."""
    assert NAMES == ["filler", "judge", "planner", "replanner", "verifier"]


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_renders_with_exactly_its_holes(name: str) -> None:
    """With a value for every hole nothing is left to fill, and each value is in the text."""
    prompt = load(name)
    sections = [section for section in prompt.sections if section != "rules"]
    values = {hole: f"«{hole}»" for hole in prompt.holes(sections)}
    rendered = prompt.render(sections, values)
    both = rendered.rules + rendered.task
    assert all(value in both for value in values.values())
    assert "<!--" not in both
    assert not Template(both.replace("${", "")).get_identifiers()
    assert rendered.sha256 == prompt.sha256


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_or_unknown_hole_is_refused(name: str) -> None:
    """A prompt is never sent half filled, and a value for a hole it does not have is a mistake."""
    prompt = load(name)
    values = dict.fromkeys(prompt.holes(["task"]), "x")
    with pytest.raises(ValueError, match="goal"):
        prompt.render(["task"], {hole: value for hole, value in values.items() if hole != "goal"})
    with pytest.raises(ValueError, match="surplus"):
        prompt.render(["task"], {**values, "surplus": "x"})


@pytest.mark.parametrize("name", NAMES)
def test_references_in_a_prompt_are_shown_as_they_are_written(name: str) -> None:
    """The escaped dollars of a prompt file come out as references that our own reader understands."""
    prompt = load(name)
    rules = prompt.render(["task"], dict.fromkeys(prompt.holes(["task"]), "")).rules
    references = [str(part) for part in parse(rules) if not isinstance(part, str)]
    assert references
    assert all(reference.startswith(("${s", "${inputs.", "${item")) for reference in references)


def test_the_hash_is_of_the_content() -> None:
    """One changed character gives another hash."""
    assert read("p", "a $goal").sha256 != read("p", "a  $goal").sha256


@pytest.mark.parametrize("text", ["costs $5", "a $", "${not a name}"])
def test_a_lone_dollar_is_found_when_the_file_is_read(text: str) -> None:
    """A prompt with a misspelled hole never gets as far as a call."""
    with pytest.raises(ValueError, match="dollar"):
        read("p", text)


def test_a_section_stands_once() -> None:
    """Two sections of one name would silently be one."""
    with pytest.raises(ValueError, match="twice"):
        read("p", "r\n<!-- task -->\na\n<!-- task -->\nb\n")


@given(JSON_VALUES)
def test_quoted_values_cannot_leave_their_element(value: object) -> None:
    """What a stranger wrote holds no angle bracket when quoted, and reads back as exactly what it was."""
    text = quoted(value)
    assert "<" not in text
    assert ">" not in text
    assert json.loads(text) == value


def test_values_are_filled_in_once() -> None:
    """A goal that looks like a hole stays a text."""
    assert (
        read("p", "$goal\n<!-- task -->\n$tools\n").render(["task"], {"goal": "$tools", "tools": "t"}).rules == "$tools"
    )


def test_small_values_leave_their_room_to_large_ones() -> None:
    """Within the budget values stay whole; of one that is too long the beginning and its length are shown."""
    shown = bounded({"small": [1, 2], "large": "x" * 1_000}, 200)
    assert shown["small"] == [1, 2]
    assert shown["large"]["cut"] is True
    assert shown["large"]["characters"] == 1_002
    assert 150 < len(shown["large"]["beginning"]) <= 200


@given(st.dictionaries(st.text(min_size=1, max_size=3), JSON_VALUES, max_size=6), st.integers(0, 500))
def test_values_keep_within_the_budget(values: dict[str, object], budget: int) -> None:
    """However values are distributed, what is shown of them is not longer than the budget; names stay."""
    shown = bounded(values, budget)
    assert list(shown) == list(values)
    cut = {name for name, value in shown.items() if isinstance(value, dict) and value.get("cut") is True}
    whole = sum(
        len(json.dumps(values[name], ensure_ascii=False, separators=(",", ":"))) for name in values.keys() - cut
    )
    assert whole + sum(len(shown[name]["beginning"]) for name in cut) <= budget
