"""JSON-like values: one canonical text each, and everything unstorable is found."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.values import MAX_DEPTH, canonical, clean, dotted, printable, sha256_of, too_deep, unclean
from tests.plans.sample import values


def typed(value: object) -> object:
    """A value in which 1, 1.0 and True differ, and the order of keys does not count."""
    if isinstance(value, dict):
        return frozenset((key, typed(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(typed, value))
    return (type(value).__name__, repr(value))


@given(values, values)
def test_canonical_texts_are_equal_exactly_where_values_are(one: object, other: object) -> None:
    """Two values share a canonical text, and with it a hash, only if they are the same to the type."""
    assert (canonical(one) == canonical(other)) == (typed(one) == typed(other))
    assert (sha256_of(one) == sha256_of(other)) == (typed(one) == typed(other))


@given(st.dictionaries(st.text(max_size=4), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_change_the_canonical_text(value: dict[str, int]) -> None:
    """Keys are sorted, so that two writers of one value agree."""
    assert canonical(dict(reversed(value.items()))) == canonical(value)


def test_numbers_text_and_truth_stay_apart() -> None:
    """1, 1.0, "1" and true are four values."""
    assert len({sha256_of(value) for value in (1, 1.0, "1", True)}) == 4
    assert canonical({"b": [1, 1.0, "é"], "a": None}) == '{"a":null,"b":[1,1.0,"é"]}'


@given(values)
def test_a_clean_value_is_given_back(value: object) -> None:
    """What can be stored passes unchanged, and survives JSON."""
    assert clean(value) is value
    assert typed(json.loads(json.dumps(value))) == typed(value)


KEY_OR_INDEX: list[str | int] = ["k", 0]
DIRT: list[tuple[Any, str]] = [
    ("a\x00b", "U+0000"),
    ("\ud800", "U+D800"),
    ("x\udfff", "U+DFFF"),
    (float("nan"), "nan"),
    (float("inf"), "inf"),
    (float("-inf"), "-inf"),
    (2**63, "64 bits"),
    (-(2**63) - 1, "64 bits"),
    (Decimal(1), "Decimal"),
    (datetime.now(UTC), "datetime"),
    (b"x", "bytes"),
    ({1, 2}, "set"),
    ({1: 2}, "keys must be text"),
]


@pytest.mark.parametrize(("dirt", "said"), DIRT, ids=lambda value: str(value)[:12])
@given(st.data())
def test_dirt_is_found_wherever_it_lies(dirt: Any, said: str, data: st.DataObject) -> None:
    """One unstorable value at any depth is found, with its place and the reason."""
    value: Any = dirt
    path: tuple[str | int, ...] = ()
    for step in data.draw(st.lists(st.sampled_from(KEY_OR_INDEX), max_size=4)):
        value, path = ({"k": value} if step == "k" else [value]), (step, *path)
    ((found, why),) = list(unclean(value))
    assert found == path
    assert said in why
    with pytest.raises(ValueError, match=r"is|holds|has"):
        clean(value)


def test_dirt_in_keys_is_found() -> None:
    """A key is stored like a value."""
    assert [why for _, why in unclean({"a\x00": 1})] == ["holds the character U+0000, which cannot be stored"]


def test_the_limits_of_integers_are_exact() -> None:
    """The largest and smallest 64-bit integers pass; booleans are no integers."""
    assert clean([2**63 - 1, -(2**63), True]) == [2**63 - 1, -(2**63), True]


def test_everything_wrong_is_said_up_to_five_places() -> None:
    """One error names the places, not only the first."""
    with pytest.raises(ValueError, match=r"a\[0\].*b.*c") as refused:
        clean({"a": ["\x00"], "b": float("nan"), "c": {"d": 2**64}, "e": "\x00", "f": "\x00", "g": "\x00"})
    assert str(refused.value).count(";") == 4


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("steps", 0, "args", "limit"), "steps[0].args.limit"),
        ((0, "a"), "[0].a"),
        (("a", 1, 2), "a[1][2]"),
        (("a\x00b",), "a\\u0000b"),
        (("x" * 200,), "x" * 79 + "…"),
    ],
)
def test_a_path_is_shown_as_one_would_write_it(path: tuple[str | int, ...], text: str) -> None:
    """Places in messages are short and printable."""
    assert dotted(path) == text


@given(st.text())
def test_shown_text_can_be_printed_and_stored(text: str) -> None:
    """Whatever a stranger wrote, what is quoted of it is short, printable and clean."""
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) <= 80 * 8
    assert clean(shown) == shown


@pytest.mark.parametrize(("wrap", "depth"), [(lambda inner: [inner], 1), (lambda inner: {"k": inner}, 1)])
def test_depth_is_counted_exactly_and_without_recursion(wrap: Any, depth: int) -> None:
    """MAX_DEPTH levels pass, one more does not, and a hundred thousand break nothing."""
    value: Any = "x"
    for level in range(100_000):
        if level in (0, MAX_DEPTH, MAX_DEPTH + 1, 99_999):
            assert too_deep(value) is (level > MAX_DEPTH)
        value = wrap(value)


def test_a_value_that_refers_to_itself_is_too_deep() -> None:
    """Loops, and sharing that would double with every level, are answered at once."""
    loop: list[Any] = []
    loop.append(loop)
    assert too_deep(loop)
    shared: Any = []
    for _ in range(60):
        shared = [shared, shared]
    assert not too_deep(shared)
