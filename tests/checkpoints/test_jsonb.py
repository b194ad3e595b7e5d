"""JSON in PostgreSQL: every clean value comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkpoints.jsonb import jsonb
from plans.values import canonical, unclean

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Any:
    """A plain connection."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@given(values)
@example([1e16, -1.5e300, 1e16 * 3, 5e-324, 1.0, 1, {"1e+16": '"1e+16\\'}])
def test_what_jsonb_gives_back_is_what_was_written(server: psycopg.Connection[Any], value: Any) -> None:
    """Every clean value keeps its value and types through a jsonb column (only -0.0 loses its sign)."""
    found = server.execute("SELECT %s::jsonb", (jsonb(value),)).fetchone()
    assert found is not None
    assert canonical(found[0]).replace("-0.0", "0.0") == canonical(value).replace("-0.0", "0.0")
    assert not list(unclean(found[0]))


def test_what_cannot_be_stored_is_named() -> None:
    """An unclean value is refused with its place, before a statement is sent."""
    with pytest.raises(ValueError, match=r"a\[1\] is an integer beyond 64 bits"):
        jsonb({"a": [1, 2**63]})
    assert json.loads(jsonb({"1e+16": 1e16})) == {"1e+16": 1e16}
