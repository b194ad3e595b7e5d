"""Words about entries of the audit: names and codes, and nothing that a run holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.audit_lines import what, who
from graph.auditing import anchors_in
from plans.errors import InvalidInput
from plans.values import JSON

SECRET = "planted-content"
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.just(SECRET), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner)
)


@given(
    kind=st.sampled_from(["draft", "plan", "outcome", "decision", "intent", "asked", "verdict", "finish"]),
    body=st.dictionaries(
        st.sampled_from(["args", "answer", "goal", "inputs", "message", "reason", "head", "fragments"]), VALUES
    ),
    inside=st.sampled_from(["request", "verdict", "failure", "decision"]),
)
def test_no_member_that_holds_content_is_told(kind: str, body: dict[str, JSON], inside: str) -> None:
    """Arguments, answers, goals and texts stay out, wherever they stand in a row."""
    assert SECRET not in what(kind, {**body, inside: body})
    assert who(kind, body) is None


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("draft", {"source": "model", "valid": False, "faults": [{"code": "UNKNOWN_TOOL"}] * 2},
         "model: refused: UNKNOWN_TOOL"),
        ("draft", {"source": "file", "valid": True}, "file: valid"),
        ("outcome", {"call": "double|2eca", "output": {"output_ref": "sha256-173f9a8c0b03b746"}},
         "double sha256-173f9a8c0b03"),
        ("outcome", {"failure": {"code": "NOT_FOUND", "tool": "bad", "message": "no"}}, "bad NOT_FOUND"),
        ("decision", {"by": "ann", "tool": "send", "kind": "risk", "decision": {"type": "edit"}}, "send risk edit"),
        ("plan", {"revision": 2, "source": "model", "plan": {"steps": [{}, {}]}}, "model 2 2 steps"),
        ("plan", {"$artifact": "sha256-1"}, ""),
        ("verdict", {"verdict": None}, ""),
    ],
)  # fmt: skip
def test_a_row_is_told_in_a_few_words(kind: str, body: dict[str, JSON], told: str) -> None:
    """What was decided, of which tool, with which code."""
    assert what(kind, body) == told


@pytest.mark.parametrize(
    "line", ["", "[]", "7", '{"seal": 1}', '{"seal": 1, "hash": "zz"}', '{"seal": "a", "hash": ""}']
)
def test_a_line_that_is_no_seal_is_refused(line: str) -> None:
    """A file that proves nothing is never taken for one that does."""
    with pytest.raises(InvalidInput, match="kept seals"):
        anchors_in(line)
