"""Personal data is found by form and check digits, and what only looks a little like it is left."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.personal import Found, Pseudonyms, apart, personal_pieces
from tools.privacy import BUILT_IN

PEOPLE = [
    ("ann.lee+x@shop.example.co.uk", "EMAIL"), ("müller@post.example", "EMAIL"),
    ("+49 30 1234567", "PHONE"), ("+1 (555) 123-4567", "PHONE"), ("(555) 123-4567", "PHONE"), ("555-123-4567", "PHONE"),
    ("0049 30 1234567", "PHONE"), ("030 1234567", "PHONE"), ("0171/1234567", "PHONE"), ("13800138000", "PHONE"),
    ("4111 1111 1111 1111", "CARD"), ("5500005555555559", "CARD"), ("3782-822463-10005", "CARD"),
    ("4111111111111112", None),
    ("DE89 3704 0044 0532 0130 00", "IBAN"), ("GB82WEST12345698765432", "IBAN"), ("DE00370400440532013000", None),
    ("11010519491231002X", "ID"), ("110105194912310021", None),
    ("12345678Z", "ID"), ("X1234567L", "ID"), ("12345678A", None),
    ("1 85 05 78 006 084 91", "ID"), ("RSSMRA85T10A562S", "ID"), ("RSSMRA85T10A562T", None),
    ("529.982.247-25", "ID"), ("529.982.247-26", None), ("44051401359", "ID"), ("86095742719", "ID"),
    ("86095742710", None),
    ("2341 2341 2346", "ID"), ("2341 2341 2347", None), ("123-45-6789", "ID"),
    ("000-45-6789", None), ("AB 12 34 56 C", "ID"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), PEOPLE)
def test_each_kind_is_found_by_its_form_and_its_check_digits(text: str, kind: str | None) -> None:
    """Found whole within a sentence; a number whose check digits are wrong is nobody's."""
    said = f"it is {text}, they say"
    start = said.index(text)
    assert personal_pieces(said) == ([Found(start, start + len(text), kind)] if kind else [])


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 10:30:00, 30.11.2026, 11/30/2026", "order A1234 costs 1,234.50 EUR (v1.2.3)", "192.168.1.10:8080",
        "sha256 3f9a1c0d4b", "1234567890123", "report-2026-0042.csv", "https://shop.example/orders?page=20", "0.0512",
        "take 10 of 200 000", "@handle", "a@b", "s1[0].id", "12:30-14:45", "100-200", "COVID19 B2B A4 MP3",
    ],
)  # fmt: skip
def test_ordinary_numbers_stay(text: str) -> None:
    """Dates, amounts, versions, addresses of machines and hashes are nobody's."""
    assert personal_pieces(text) == []


def test_a_value_loses_it_in_texts_and_keys_and_numbers_stay() -> None:
    """In its kind's place people read what was there; a value without any is the very same one."""
    value = {"ann@x.example": ["call +49 30 1234567", 4111111111111111, None]}
    assert BUILT_IN.personal_in(value) == {"[e-mail]": ["call [phone number]", 4111111111111111, None]}
    clean = {"a": [{"b": "nothing here"}]}
    assert BUILT_IN.personal_in(clean) is clean


def test_stand_ins_are_the_same_for_the_same_piece_and_come_back() -> None:
    """Also where a model writes their brackets as JSON may; one that was never given out stays."""
    stand_ins = Pseudonyms(personal_pieces)
    shown = stand_ins.hide(r'{"to": "ann@x.example", "cc": "bob@x.example\nann@x.example"}')
    assert shown == r'{"to": "<EMAIL_1>", "cc": "<EMAIL_2>\n<EMAIL_1>"}'
    assert stand_ins.restore(r"<EMAIL_2> \u003cEMAIL_1\u003e <email_2> <EMAIL_3>") == (
        "bob@x.example ann@x.example bob@x.example <EMAIL_3>"
    )


def test_a_stranger_s_text_cannot_name_a_stand_in() -> None:
    """What stands in a text in the form of a stand-in before is nobody's, so that no name is given out twice."""
    stand_ins = Pseudonyms(personal_pieces)
    shown = stand_ins.hide(r"\u003cEMAIL_1\u003e and <PHONE_1> wrote from ann@x.example")
    assert shown.endswith("<EMAIL_2>")
    assert stand_ins.restore("<EMAIL_1> <PHONE_1>") == "<EMAIL_1> <PHONE_1>"


PIECES = [*"aA1 .-/+@<>()\n", "ann@x.example", "+49 30 1234567", "4111 1111 1111 1111", "<EMAIL_1>", "0", "49", "DE89"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_is_hidden_comes_back_whatever_the_text(text: str) -> None:
    """Hiding and restoring are inverse, also where the text itself has the form of stand-ins."""
    stand_ins = Pseudonyms(personal_pieces)
    shown = stand_ins.hide(text)
    assert stand_ins.restore(shown) == text


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=8))
def test_finds_that_overlap_give_way_to_the_first(spans: list[tuple[int, int]]) -> None:
    """What is left is in order, does not overlap, and the first that was found is in it."""
    found = [Found(start, start + length, "X") for start, length in spans]
    kept = apart(found)
    assert all(before.end <= after.start for before, after in pairwise(kept))
    assert not found or found[0] in kept


@pytest.mark.parametrize("piece", ["1", "1 ", "a@", "a.", "+1", "0 1", "-1", "A1", "(1)", "a@b.", "DE11 "])
def test_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    """64,000 characters take well below a second."""
    text = piece * (64_000 // len(piece))
    began = time.process_time()
    personal_pieces(text)
    assert time.process_time() - began < 1


@given(moment=st.datetimes(timezones=st.just(UTC)), tail=st.uuids())
def test_ids_and_moments_are_nobodys_number(moment: datetime, tail: UUID) -> None:
    """One run id in ten has the check digit of a card: logs and archives would lose which run they are about."""
    day = moment.replace(year=2020 + moment.year % 60, day=min(moment.day, 28))
    for text in (f"{day:%Y%m%d-%H%M%S}-{tail.hex[:8]}", f"{day:%Y%m%d%H%M%S}", day.isoformat(), str(tail)):
        assert personal_pieces(f"run {text} ended") == []
