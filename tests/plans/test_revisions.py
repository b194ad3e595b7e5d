"""How a change of a plan is told in one line."""

from __future__ import annotations

import pytest

from plans.revisions import LONGEST, Change

LONG = "Dear customer, we are sorry to hear that your parcel has not come yet, and send it again. "


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ({"to": "ann", "text": LONG}, {"to": "bob", "text": LONG}, "args.to: ann → bob"),
        ({"to": "ann"}, {"to": "ann", "cc": "eve"}, "args.cc: (nothing) → eve"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, "args.a.c: 2 → 3"),
        (
            {"text": f"{LONG}Ann"},
            {"text": f"{LONG}Bob"},
            "args.text: … and send it again. Ann → … and send it again. Bob",
        ),
    ],
)
def test_what_has_changed_is_told_field_by_field(was: object, now: object, told: str) -> None:
    """However long all of it is, the place and both values where they differ stand in the line."""
    line = Change("s1", "changed", "send", fields={"args": (was, now)}).line
    assert line == f"~ s1  {told}"


def test_a_line_stays_short_whatever_has_changed() -> None:
    """Each value is cut."""
    line = Change("s1", "changed", "send", fields={"args": ({"text": "x" * 900}, {"text": "y" * 900})}).line
    assert len(line) <= 2 * LONGEST + 40
