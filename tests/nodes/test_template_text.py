"""Goals against patterns, translations, and holes that are filled once and stay data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.template_text import Language, Reference, comparable, filled, holes_in, in_language, whole_goal
from plans.references import resolve

PLAIN_TEXT = st.text(alphabet=st.sampled_from("ab$<>{}s1.\\ 中"), max_size=12)


def matches(pattern: str, goal: str, language: Language = "en") -> bool:
    return whole_goal(pattern, (), language).fullmatch(comparable(goal, language)) is not None


@pytest.mark.parametrize(
    "goal",
    [
        "find late orders",
        "Find late orders.",
        "  FIND   late\torders!! ",
        "Please find late orders, thanks!",
        "Could you please find late orders?",
        "Hi, can you find late orders for me please",
        "I would like you to find late orders",
        "“find late orders”",
        "ｆｉｎｄ late orders",
    ],
)
def test_politeness_case_and_marks_do_not_matter(goal: str) -> None:
    """One pattern meets every polite way to say the same thing."""
    assert matches("find late orders", goal)


@pytest.mark.parametrize(
    "goal", ["请帮我查找延误订单。", "麻烦您查找延误订单，谢谢", "你好，能不能查找 延误订单？", "查找延误订单吧"]
)
def test_politeness_in_chinese_does_not_matter(goal: str) -> None:
    """Chinese goals may be polite, spaced and punctuated as people write them."""
    assert matches("查找延误订单", goal, "zh")


@pytest.mark.parametrize(
    "goal",
    [
        "find late orders and delete them",
        "find late orders, then refund everybody",
        "find late orders. Delete them.",
        "don't find late orders",
        "do not find late orders",
        "why find late orders",
        "find late orders now and cancel",
        "find late ordersx",
        "please",
        "",
    ],
)
def test_a_goal_that_asks_for_more_or_other_is_left_alone(goal: str) -> None:
    """A pattern covers the whole goal: a further demand or a negation is not overlooked."""
    assert not matches("find late orders", goal)


@pytest.mark.parametrize("goal", ["不要查找延误订单", "查找延误订单并删除", "查找延误订单，然后退款"])
def test_a_chinese_goal_that_asks_for_more_is_left_alone(goal: str) -> None:
    """The same in Chinese."""
    assert not matches("查找延误订单", goal, "zh")


def test_words_are_put_into_patterns() -> None:
    """A pattern names its words, and each stands for all its alternatives as one group."""
    pattern = whole_goal("{find} {orders}", (("find", "find|show"), ("orders", "late|early")), "en")
    assert pattern.fullmatch("show early")
    assert not pattern.fullmatch("find")


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [
        ({"en": "Late", "zh": "晚了"}, "Late", "晚了"),
        ({"en": "Late"}, "Late", "Late"),
        ([{"a": {"en": "x", "zh": "y"}}], [{"a": "x"}], [{"a": "y"}]),
        ({"en": 1, "de": 2}, {"en": 1, "de": 2}, {"en": 1, "de": 2}),
        ({"zh": "y"}, {"zh": "y"}, {"zh": "y"}),
    ],
)
def test_translations_are_chosen_wherever_they_stand(value: Any, english: Any, chinese: Any) -> None:
    """An object of languages becomes its text, English where a translation is missing; other objects stay."""
    assert in_language(value, "en") == english
    assert in_language(value, "zh") == chinese


def test_a_hole_keeps_its_type_or_becomes_text() -> None:
    """A hole that is the whole string is the value itself; inside a longer one it is text."""
    values = {"n": 5, "rows": [1, {"a": None}], "who": "Ann", "file": Reference("${inputs.f}")}
    template = {
        "a": "<<n>>",
        "b": ["<<rows>>", "no hole"],
        "c": "<<who>> has <<n>> of <<rows>>",
        "d": "<<file>>",
        "e": 1,
    }
    assert filled(template, values) == {
        "a": 5,
        "b": [[1, {"a": None}], "no hole"],
        "c": 'Ann has 5 of [1, {"a": null}]',
        "d": "${inputs.f}",
        "e": 1,
    }
    assert list(holes_in(template)) == ["n", "rows", "who", "n", "rows", "file"]


def test_a_hole_without_a_value_is_an_error() -> None:
    """Nothing is left half filled."""
    with pytest.raises(KeyError, match="who"):
        filled("<<who>>", {})


@given(PLAIN_TEXT, PLAIN_TEXT)
def test_what_is_filled_in_is_never_read_again(first: str, second: str) -> None:
    """A value that looks like a hole or a reference comes out of the filled and resolved plan as it was given."""
    template = {"whole": "<<first>>", "inside": "1: <<first>>, 2: <<second>>; ${s1}", "deep": "<<both>>"}
    values = {"first": first, "second": second, "both": [first, {"k": second}]}
    plan = filled(template, values)
    assert resolve(plan, {"s1": "RESULT"}.__getitem__) == {
        "whole": first,
        "inside": f"1: {first}, 2: {second}; RESULT",
        "deep": [first, {"k": second}],
    }
