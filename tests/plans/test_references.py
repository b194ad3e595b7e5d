"""References: one form, values by whole references, text inside text, and never a second scan."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.references import (
    Reference,
    UnresolvedReference,
    as_text,
    escape,
    lines_of,
    located,
    parse,
    references_in,
    resolve,
)
from plans.values import JSON, canonical
from tests.plans.sample import names, texts, values

FRAGMENTS = ["${s1}", "${s2.a[0]}", "${a", "$${", "${", "$", "{", "}", "'", '"', "`", "\\", "s1", ".", " ", "é"]
HOSTILE = st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join)
PATHS = st.sampled_from(
    ["", ".id", "[0].id", ".items[?a == '}'].b", '."a}b"', ".{a: x, b: y}", " | [0]", '.x[?y == `"}"`]']
)


def lookup(**named: JSON) -> Any:
    """Values by name, as a run hands them in."""
    return named.__getitem__


@given(values, names)
def test_a_whole_reference_becomes_the_value_of_whatever_type(value: JSON, name: str) -> None:
    """A string that is nothing but a reference is replaced by the value itself, to the type."""
    assert canonical(resolve(f"${{{name}}}", lookup(**{name: value}))) == canonical(value)


@given(values, texts, texts)
def test_inside_a_longer_text_a_reference_becomes_text(value: JSON, before: str, after: str) -> None:
    """Text stays as it is, everything else is written as JSON."""
    text = f"{escape(before)}-${{s1}}-{escape(after)}"
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    assert resolve(text, lookup(s1=value)) == f"{before}-{shown}-{after}"


@given(HOSTILE | texts)
def test_what_a_reference_resolves_to_is_never_scanned_again(value: str) -> None:
    """A result that looks like a reference is data: it comes through as it stands, alone and inside a text."""
    found = lookup(s1=value, s2="secret", a="secret", b="secret", s="secret")
    assert resolve("${s1}", found) == value
    assert resolve("<${s1}>", found) == f"<{value}>"
    assert resolve(["${s1}", {"k": "${s1}"}], found) == [value, {"k": value}]


@given(HOSTILE | texts)
def test_an_escaped_text_resolves_to_itself(text: str) -> None:
    """`escape` makes any text safe to put into a plan, alone or joined to others."""
    assert references_in(escape(text)) == []
    assert resolve(escape(text), lookup()) == text
    assert resolve(escape(text) + "${s1}", lookup(s1="!")) == text + "!" or text.endswith("$")


@given(HOSTILE)
def test_parsing_never_fails_and_loses_nothing(text: str) -> None:
    """Any text is literal parts and references; put together again they are the text."""
    parts = parse(text)
    assert all(isinstance(part, Reference) or part for part in parts)
    assert "".join(str(part) if isinstance(part, Reference) else part for part in parts) == text.replace("$${", "${")


@given(st.lists(st.tuples(texts, names, PATHS), max_size=4))
def test_references_are_found_where_they_were_written(written: list[tuple[str, str, str]]) -> None:
    """Name and path come back as written, in order, whatever text, quotes or braces surround or fill them."""
    text = "".join(f"{escape(before)} ${{{name}{path}}}" for before, name, path in written)
    assert references_in(text) == [Reference(name, path) for _, name, path in written]
    assert all(str(reference) in text for reference in references_in(text))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("$", ("$",)),
        ("$5 and $", ("$5 and $",)),
        ("${", ("${",)),
        ("${}", ("${}",)),
        ("${1a}", ("${1a}",)),
        ("${ s1}", ("${ s1}",)),
        ("${s1", ("${s1",)),
        ("$${s1}", ("${s1}",)),
        ("$$${s1}", ("$${s1}",)),
        ("$s1", ("$s1",)),
        ("{s1}", ("{s1}",)),
        ("${s-1.x}", (Reference("s-1", ".x"),)),
        ("${s1}${s2}", (Reference("s1", ""), Reference("s2", ""))),
        ("a${s1.b['}']}c", ("a", Reference("s1", ".b['}']"), "c")),
        (r"${s1.'\'}'}", (Reference("s1", r".'\'}'"),)),
        ("${s1.'}", ("${s1.'}",)),
        ("${s1.'\\", ("${s1.'\\",)),
        ("${a.x${b}}", ("${a.x", Reference("b", ""), "}")),
        ("${é}", ("${é}",)),
    ],
)
def test_what_is_a_reference_and_what_is_a_dollar(text: str, parts: tuple[str | Reference, ...]) -> None:
    """There is one form; everything else is the text that stands there."""
    assert parse(text) == parts


def test_places_of_references_are_paths() -> None:
    """Whoever checks arguments learns where a value is still open, and whether it is the whole of a string."""
    found = list(located({"a": ["x", "${s1}"], "b": {"c": "<${s2.x}>"}, "${no}": 1}))
    assert found == [(("a", 1), True, Reference("s1", "")), (("b", "c"), False, Reference("s2", ".x"))]


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("${s2}", {}, "'s2'"),
        ("${s1.x}", {"y": 1}, "finds nothing in an object with the keys y"),
        ("${s1.x}", {}, "an empty object"),
        ("${s1.x}", None, "null"),
        ("${s1.x}", "words", "finds nothing in text"),
        ("${s1[3]}", [1], "a list of 1"),
        ("<${s1.x}>", {}, "finds nothing"),
        ("${s1.[}", {}, "not JMESPath"),
        ("${s1 | sum(@)}", {}, "cannot be evaluated"),
        ("${s1 | nope(@)}", {}, "no function nope"),
    ],
)
def test_a_path_that_finds_nothing_is_a_failure(text: str, value: JSON, said: str) -> None:
    """Never an empty argument: the sentence says what was looked for and what was there."""
    with pytest.raises(UnresolvedReference, match=said):
        resolve(text, lookup(s1=value))


def test_a_null_that_really_stands_there_is_a_value() -> None:
    """A plain path to null gives null; a path that goes nowhere is still a failure."""
    result = {"a": None, "b": [None], "c": {"d": None}}
    assert resolve(["${s1.a}", "${s1.b[0]}", "${s1.c.d}", "<${s1.a}>"], lookup(s1=result)) == [
        None,
        None,
        None,
        "<null>",
    ]
    assert resolve("${s1}", lookup(s1=None)) is None
    with pytest.raises(UnresolvedReference):
        resolve("${s1.a.b}", lookup(s1=result))


@given(values)
def test_resolving_a_value_without_references_changes_nothing(value: JSON) -> None:
    """Numbers, nulls, nesting and dollars come through, and the value itself is left alone."""
    before = canonical(value)
    resolved = resolve(json.loads(before.replace("${", "$ {")), lookup())
    assert canonical(resolved) == before.replace("${", "$ {")


def test_text_of_a_value() -> None:
    """A string is itself, anything else is JSON with its letters kept."""
    assert [as_text(value) for value in ("ä", 1.5, True, None, {"é": [1]})] == [
        "ä",
        "1.5",
        "true",
        "null",
        '{"é": [1]}',
    ]


@pytest.mark.parametrize("piece", ["${a", "${a'", '${a`"', "${a{", "$${", "${a[?x=='", "$", "'", "${a}", "\\"])
def test_a_hostile_text_is_parsed_in_linear_time(piece: str) -> None:
    """A megabyte of half-open references takes seconds, not hours."""
    started = time.process_time()
    parse(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 15


@given(st.text(alphabet="a\n${}'"))
def test_lines_put_together_are_the_text(text: str) -> None:
    """Splitting into lines changes nothing but where the text is cut."""
    assert parse("\n".join(lines_of(text))) == parse(text)


def test_a_line_break_inside_a_reference_ends_no_line() -> None:
    """JMESPath may join with a line break; the reference around it stays whole."""
    reference = "${s1 | join('\n- ', @)}"
    assert lines_of(f"all:\n{reference} $${{x}}\nend") == ["all:", f"{reference} $${{x}}", "end"]
