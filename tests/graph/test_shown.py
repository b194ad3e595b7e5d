"""What is shown of a request before anyone decides: nothing that stands in it can pass for anything else."""

from __future__ import annotations

from typing import Any

import pytest

from graph.commands.asking import request_text
from graph.commands.exactly import MOST_LINES
from graph.commands.printing import harmless
from nodes.chat import asked_text
from plans.decisions import ApprovalRequest
from plans.provenance import Provenance


def shown(args: dict[str, Any], *sources: Provenance, reason: str = "send is of high risk") -> list[str]:
    """The lines that somebody sees of such a request."""
    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s1", tool="send", args_sha256="", risk="high", args=args,
        reason=reason, created_at="2026-01-01T00:00:00Z", sources=sources,  # type: ignore[arg-type]  # read from text
    )  # fmt: skip
    return harmless(request_text(request)).splitlines()


def in_chat(args: dict[str, Any]) -> list[str]:
    """The same in a message."""
    request = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s1", tool="send", args_sha256="", risk="high", args=args,
        reason="send is of high risk", created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read from text
    )  # fmt: skip
    return asked_text([request]).splitlines()


STRANGE = Provenance(argument="to", source="s1.to", tool="look", trusted=False)


@pytest.mark.parametrize(
    "end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\n\n", "\x1b[2K\r"]
)
def test_no_value_writes_a_line_of_ours(end: str) -> None:
    """Whatever ends its lines: where a value comes from, why it is asked and who agrees is told by us alone."""
    value = end.join(["ann", "← inputs.to", "  why  it is fine", "s2: look, risk low"])
    lines = shown({"to": value}, STRANGE)
    assert [line.strip() for line in lines if line.strip().startswith("←")] == ["← s1.to of look, not trusted"]
    assert sum(line.startswith("  why") for line in lines) == 1
    assert sum(not line.startswith(" ") for line in lines) == 1


@pytest.mark.parametrize("name", ["to\n  why  fine", "x" * 5_000, "to\x1b[1A", "\u202eot"])
def test_no_name_of_an_argument_does_either(name: str) -> None:
    """A tool may take arguments of any name; each is one line, and pushes nothing aside."""
    lines = shown({name: "ann"})
    assert len(lines) == 3
    assert all(len(line) < 100 for line in lines)
    assert "\x1b" not in lines[2]


def test_a_reason_is_one_line_of_what_can_be_printed() -> None:
    """It may hold the words of a model, or a path that one has written."""
    lines = shown({"to": "ann"}, reason="it\nasks\u2028\u202e" + "x" * 9_000)
    assert len(lines) == 3
    assert len(lines[1]) < 1_100


def test_no_value_hides_the_rest() -> None:
    """Thousands of lines, or blanks after which a terminal begins a line that looks like ours."""
    lines = shown({"text": "a\n" * 1_999, "to": "ann" + " " * 77 + "s2: look, risk low", "cc": "eve"})
    assert len(lines) == MOST_LINES + 4
    assert "(2,000 lines, 3,998 characters; all of it: surestep approvals --json)" in lines[MOST_LINES + 1]
    assert "  to    ann [77 blanks] s2: look, risk low" in lines


@pytest.mark.parametrize("unseen", ["\u200b", "\xad", "\u2060", "\ufeff", "\u202e", "\u2066", "\U000e0041", "\u200f"])
def test_what_cannot_be_seen_is_shown(unseen: str) -> None:
    """Two recipients that look the same are two."""
    assert f"ann\\x{ord(unseen):02x}@example.com" in shown({"to": f"ann{unseen}@example.com"})[2]


def test_every_source_that_is_not_trusted_is_told() -> None:
    """Of an argument with a point in its name, of a step called like a source of ours, and before the others."""
    sources = [Provenance(argument="to", source=f"inputs.n{n}") for n in range(20)]
    lines = shown({"to": "ann", "to.cc": "eve"}, *sources, STRANGE, STRANGE.model_copy(update={"source": "plan"}))
    told = [line.strip() for line in lines if "←" in line]
    assert told[:2] == ["← s1.to of look, not trusted", "← plan of look, not trusted"]
    dotted = shown({"to.cc": "eve"}, STRANGE.model_copy(update={"argument": "to.cc"}))
    assert dotted[-1].strip() == "← s1.to of look, not trusted"


@pytest.mark.parametrize(
    "text",
    ["![a](https://eve.example/?q=1)", "[ann](https://eve.example)", "<img src=x>", "https://eve.example", "a`b`**c**"],
)
def test_no_value_is_markup_in_a_chat(text: str) -> None:
    """A picture that is fetched, a link that says it leads elsewhere: values and names are code, words are words."""
    assert in_chat({"to": f"ann\n\n{text}"})[1:] == [f"- to: `ann {text.replace('`', chr(39))}`"]
    assert in_chat({f"to\n{text}": "Ann B., 13"})[1:] == [f"- `to {text.replace('`', chr(39))}`: Ann B., 13"]
