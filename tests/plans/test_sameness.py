"""Tests of when two steps, drafts or calls are the same: by what they do, not by how they are written down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.plan import PlanDraft
from plans.sameness import draft_name, normal, same_call, step_names


def drafted(*steps: dict[str, Any]) -> PlanDraft:
    """A draft of these steps."""
    return PlanDraft.model_validate({"goal": "g", "steps": [{"tool": "look", "reason": "r", **each} for each in steps]})


CHAIN = (
    {"id": "a", "args": {"item": "ball"}},
    {"id": "b", "args": {"item": "${a.name} and  more", "n": 1}, "when": "a.found"},
    {"id": "c", "args": {"items": ["${b}", "${inputs.list[0]}"]}, "depends_on": ["a"]},
)


def renamed(text: str, names: dict[str, str]) -> str:
    """The text of a step under other ids."""
    for old, new in names.items():
        text = text.replace(f"${{{old}", f"${{{new}").replace(f"{old}.found", f"{new}.found")
    return text


@given(st.permutations(range(3)), st.permutations(["x1", "y2", "z3"]), st.text(max_size=5))
def test_ids_words_and_order_make_no_difference(order: list[int], ids: list[str], words: str) -> None:
    """Whatever a planner calls its steps, in whatever order and with whatever reasons: it is one plan."""
    names = dict(zip("abc", ids, strict=True))
    steps: list[dict[str, Any]] = [
        {"id": names["a"], "args": {"item": " ball "}, "title": words, "reason": words or "r"},
        {"id": names["b"], "args": {"n": 1.0, "item": renamed("${a.name} and more", names)},
         "when": renamed("a.found", names), "risk": "high"},
        {"id": names["c"], "args": {"items": [renamed("${b}", names), "${inputs.list[0]}"], "none": None},
         "depends_on": [names["b"], names["a"]]},
    ]  # fmt: skip
    other = drafted(*(steps[place] for place in order))
    assert draft_name(other) == draft_name(drafted(*CHAIN))
    assert step_names(other.steps)[names["b"]] == step_names(drafted(*CHAIN).steps)["b"]


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"item": "cup"}},
        {"tool": "find"},
        {"success_when": "found"},
        {"timeout_s": 3},
        {"for_each": "${inputs.x}"},
    ],
)
def test_a_step_on_other_grounds_is_another_step(change: dict[str, Any]) -> None:
    """What a step does differs with what it builds on; what does not build on it stays the same."""
    before = step_names(drafted(*CHAIN, {"id": "d"}).steps)
    after = step_names(drafted({**CHAIN[0], **change}, *CHAIN[1:], {"id": "d"}).steps)
    assert [before[name] == after[name] for name in "abcd"] == [False, False, False, True]


def test_drafts_that_no_plan_could_be_have_names_too() -> None:
    """A cycle, two steps of one id, a reference to nothing: refused drafts are compared as well."""
    steps = [{"id": name, "args": {"x": f"${{{read}}}"}} for name, read in ("ab", "ba", "bc", "cz")]
    broken = drafted(*steps)
    assert draft_name(broken) == draft_name(broken.model_copy(update={"goal": "other"}))
    assert draft_name(broken) != draft_name(drafted({"id": "a", "args": {"x": "${b}"}}))


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_normal_is_normal_once_and_for_all(value: Any) -> None:
    """Twice is as once, and a call of normal arguments is the same call."""
    assert normal(normal(value)) == normal(value)
    assert same_call("t", {"a": normal(value)}) == same_call("t", {"a": value})
    assert same_call("t", {"a": True}) != same_call("t", {"a": 1})
