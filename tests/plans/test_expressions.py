"""JMESPath made safe: errors of one type, bounded work, and no expression that silently finds nothing."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.expressions import MAX_LENGTH, InvalidExpression, compiled, finds_null, holds, names_read, search
from plans.values import JSON, MAX_DEPTH
from tests.plans.sample import values

PIECES = st.sampled_from([
    "a", "b", ".", "[0]", "[*]", "[]", "[?", "]", "==", "<", "`1`", '`"x"`', "`[1]`", "`null`", "`1e400`", "`x`", "'x'",
    "length(", "sum(", "sort_by(", "max_by(", "to_number(", "join(", "keys(", "&a", ")", "|", "||", "&&", "!", "@", "*",
    "{a:", "}", ",", "[1:2]", "[::0]", "[::-1]", "map(", "ceil(", "avg(", "contains(", "reverse(", "`", "\\", "$", "-1",
    "(", "min(", '"q"',
])  # fmt: skip


@given(st.lists(PIECES, max_size=8).map("".join), values)
def test_any_expression_on_any_value_gives_a_value_or_one_kind_of_error(text: str, value: JSON) -> None:
    """Whatever a stranger writes, a caller has to catch InvalidExpression and nothing else."""
    with contextlib.suppress(InvalidExpression):
        found = search(text, value)
        assert isinstance(holds(text, value), bool)
        assert isinstance(names_read(text), frozenset)
        assert found is None or not finds_null(text, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JMESPath"),
        ("a.", "not JMESPath"),
        ("${a}", "not JMESPath"),
        ("a" * (MAX_LENGTH + 1), "at most"),
        ("(" * 1900, "not JMESPath"),
        ("!" * 1900 + "a", "nested too deeply"),
        ("!" * (MAX_DEPTH + 1) + "a", "nested too deeply"),
        ("(" * 500 + "a" + ")" * 500 + "." + "a[" * 100 + "0" + "]" * 100, "not JMESPath|nested"),
        ("nope(a)", "there is no function nope"),
        ("a[?nope(b)]", "there is no function nope"),
        ("length()", "length\\(\\) takes 1 arguments, not 0"),
        ("contains(a)", "takes 2 arguments, not 1"),
        ("not_null()", "takes 1 arguments, not 0"),
        ("!a.b", "binds to the first name only"),
        ("a && !b.c", "binds to the first name only"),
    ],
)
def test_an_expression_that_cannot_work_is_refused_when_it_is_read(text: str, said: str) -> None:
    """Unknown functions, wrong numbers of arguments and a ! that binds elsewhere are found before anything runs."""
    with pytest.raises(InvalidExpression, match=said):
        compiled(text)


@pytest.mark.parametrize("text", ["ceil(`1e400`)", "sum(@)", "@[::0]", "join(',', `[1]`)", "max_by(@, &a)", "abs('x')"])
def test_an_expression_that_cannot_be_evaluated_fails_in_the_same_way(text: str) -> None:
    """Overflow, a step of zero, wrong types: each is the one error that callers catch, in one line."""
    with pytest.raises(InvalidExpression, match="cannot be evaluated here") as failed:
        search(text, [1, {"a": None}, "x"])
    assert "\n" not in str(failed.value)


def test_a_negation_that_means_what_it_says_is_fine() -> None:
    """`!a` and `!(a.b)` work, as does a function with any number of arguments."""
    assert search("!(a.b)", {"a": {"b": False}}) is True
    assert search("!a", {"a": []}) is True
    assert search("not_null(a, b, c)", {"c": 1}) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s1", "s1"),
        ("s1.x && inputs.y", "s1 inputs"),
        ("length(s1.items[?status == 'late' && other]) > `2`", "s1"),
        ("{a: s1.x, b: s2}", "s1 s2"),
        ("[s1, s2.s3]", "s1 s2"),
        ("map(&id, s1.x)", "s1"),
        ("sort_by(s1, &s2)[0].s3", "s1"),
        ("s1[].a | [0].b", "s1"),
        ("s1 | s2", "s1"),
        ("@.s1.x", "s1"),
        ("@", ""),
        ("@ | s1", "s1"),
        ("[*].x", ""),
        ("*.x", ""),
        ("[?a]", ""),
        ("[1:2].a", ""),
        ('"s-1".x', "s-1"),
        ("!s1", "s1"),
        ("s1 || s2 == s3", "s1 s2 s3"),
        ("'s1' == `\"s2\"`", ""),
        ("s1.*.x[].{y: z}", "s1"),
    ],
)
def test_the_names_that_an_expression_reads_are_known(text: str, names: str) -> None:
    """Exactly the names at the top: no field of what lies under them, none that is evaluated on an element."""
    assert names_read(text) == set(names.split())


@given(
    st.sampled_from(["s1.x", "length(s1)", "[s1, s2]", "s1[?s2]", "map(&s2, s1)", "s1 | s2", "{a: s1}", "s1 || s2"]),
    values,
)
def test_a_name_that_is_not_read_does_not_matter(text: str, value: JSON) -> None:
    """What `names_read` leaves out cannot change the result."""
    named: dict[str, JSON] = {"s1": [{"s2": 1, "x": 2}], "s2": {"a": 1}}
    others = {name: value for name in named if name not in names_read(text)}
    assert search(text, named) == search(text, {**named, **others})


@pytest.mark.parametrize("value", [None, False, "", [], {}])
def test_jmespath_has_its_own_idea_of_false(value: JSON) -> None:
    """null, false and what is empty do not hold."""
    assert holds("a", {"a": value}) is False


@pytest.mark.parametrize("value", [0, 0.0, True, " ", [0], {"a": None}])
def test_zero_is_true_in_jmespath(value: JSON) -> None:
    """A count of 0 holds: compare it with `0` to ask for something."""
    assert holds("a", {"a": value}) is True


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", True),
        ("b.c", True),
        ("d[0]", True),
        ("d[-1]", True),
        ("@.a", True),
        ("x", False),
        ("a.x", False),
        ("d[1]", False),
    ],
)
def test_a_null_is_told_from_nothing(text: str, found: bool) -> None:
    """A plain path to a null that stands there is found; a path to nowhere is not."""
    assert finds_null(text, {"a": None, "b": {"c": None}, "d": [None]}) is found


def test_expressions_are_compiled_once() -> None:
    """The same text is the same compiled expression, so that a million evaluations parse once."""
    assert compiled("a.b.c[0]") is compiled("a.b.c[0]")
    started = time.process_time()
    for _ in range(20_000):
        search("a.b", {"a": {"b": 1}})
    assert time.process_time() - started < 5
