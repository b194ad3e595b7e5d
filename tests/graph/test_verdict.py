"""How a verdict on a plan is laid out for a person."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from graph.commands.reading import NoText, answer_in
from graph.commands.verdict import MOST_SHOWN, verdict_lines
from graph.validation import Validation, validation
from plans.faults import Fault
from tests.graph.kits import plan, step
from tools.registry import Registry, Toolkit


def lines(*faults: Fault, repaired: bool = False, steps: int = 0, width: int = 80) -> list[str]:
    """The lines of a verdict."""
    plan: dict[str, Any] | None = {"steps": [{}] * steps} if steps else None
    found = Validation(valid=plan is not None, repaired=repaired, faults=faults, plan=plan)
    return list(verdict_lines(found, width=width))


def test_faults_stand_under_their_step_in_the_order_of_the_plan() -> None:
    """The plan's own come first, then each step's with its place, then the verdict."""
    assert lines(
        Fault(code="UNKNOWN_TOOL", step="s2", path="steps[1].tool", message="no tool 'x'", fix="did you mean 'y'?"),
        Fault(code="TOO_MANY_STEPS", path="steps", message="too many"),
        Fault(code="SCHEMA_INVALID", path="steps[2]", message="no object"),
        Fault(code="NO_CRITERION", step="s1", path="steps[0]", message="whatever", severity="warning"),
        Fault(code="CYCLE", step="s2", path="steps[1].depends_on", message="in circles"),
    ) == [
        "the plan",
        "  error: TOO_MANY_STEPS at steps: too many",
        "step s1 (steps[0])",
        "  warning: NO_CRITERION: whatever",
        "step s2 (steps[1])",
        "  error: UNKNOWN_TOOL at tool: no tool 'x'",
        "    → did you mean 'y'?",
        "  error: CYCLE at depends_on: in circles",
        "steps[2]",
        "  error: SCHEMA_INVALID: no object",
        "",
        "not valid: 4 faults, 1 warning",
    ]


def test_a_clean_verdict_is_one_line() -> None:
    """Nothing is said but that it is valid, and whether it was repaired."""
    assert lines(steps=2) == ["valid: 2 steps"]
    assert lines(steps=1, repaired=True) == ["valid: 1 step (repaired: the text was not the plan as it stands)"]


def test_no_line_is_wider_than_it_may_be() -> None:
    """Long sentences, long words, and characters that take two columns are wrapped."""
    for text in ("word " * 100, "x" * 500, "计划" * 100):
        found = lines(Fault(code="CYCLE", path="p" * 300, message=text, fix=text), width=60)
        assert all(len(line.encode("gb18030")) <= 60 for line in found)
        assert len(found) > 10


def test_of_very_many_faults_the_errors_are_shown_first() -> None:
    """A page is read, a book is not: the rest is counted."""
    warnings = [Fault(code="NO_CRITERION", path=f"steps[{n}]", message="w", severity="warning") for n in range(90)]
    error = Fault(code="CYCLE", path="steps[95]", message="in circles")
    found = lines(*warnings, error)
    assert sum(line.startswith("  ") for line in found) == MOST_SHOWN
    assert "  error: CYCLE: in circles" in found
    assert found[-3:] == ["and 41 more faults; --json has all of them", "", "not valid: 1 fault, 90 warnings"]


def test_what_a_stranger_wrote_cannot_act_on_the_terminal() -> None:
    """Escapes in a fault's words are shown, not obeyed."""
    assert "\x1b" not in "".join(lines(Fault(code="CYCLE", message="a\x1b[2Jb", step="\x1b[0m")))


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"", "PLAN_EMPTY", "there is no step"),
        (b" \n", "PLAN_SYNTAX", "is empty"),
        (b'{"goal": "\xed\xa0\x80", "steps": []}', "SCHEMA_INVALID", "U+D800"),
        (b"\xef\xbb\xbfI cannot help with that.", "PLAN_SYNTAX", "begins 'I cannot help with that.'"),
        (b"<html><body>502 Bad Gateway</body></html>", "PLAN_SYNTAX", "HTML"),
    ],
)
def test_whatever_bytes_are_text_get_a_verdict(body: bytes, code: str, words: str) -> None:
    """An empty answer, raw surrogates, a mark of byte order, a server's page: faults with a place or a reason."""
    found = validation(Registry.of(), answer_in(body))
    assert (found.valid, found.plan) == (False, None)
    assert [fault.code for fault in found.faults if words in fault.message] == [code]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\x00\x01\x02\xff" * 50, "is not UTF-8 text; expected JSON or YAML"),
        ("a".encode("utf-16"), "is not UTF-8 text (it looks like UTF-16; save it as UTF-8)"),
        ("a".encode("utf-16-be"), None),
        (b"x" * 8_000_005, "has more than 8,000,004 bytes"),
        ("Bestätigung".encode("latin-1"), "is not UTF-8 text"),
    ],
    ids=["binary", "UTF-16", "UTF-16 without a mark", "large", "Latin-1"],
)
def test_bytes_that_are_no_text_are_told_in_words(body: bytes, words: str | None) -> None:
    """What they are, and what was expected; where it can be seen, how to mend it."""
    if words is None:
        assert answer_in(body) == "\x00a"
        return
    with pytest.raises(NoText, match=re.escape(words)):
        answer_in(body)


def test_secrets_that_nobody_knows_or_that_stand_in_the_open_are_told_beside_all_else() -> None:
    """As a run would refuse them; where they may stand they are no fault."""
    kit = Toolkit("mail")

    @kit.tool(effect="irreversible", risk="low")
    def send(to: str, password: str) -> str:
        """Send."""
        return to + password

    args = ({"to": "pw ${secrets.crm}", "password": "${secrets.nix}"}, {"to": "a", "password": "${secrets.crm}"})
    steps = [step("s1", "nope"), *(step(f"s{number}", "send", args=each) for number, each in enumerate(args, start=2))]
    found = validation(Registry.of(kit), json.dumps(plan(*steps)), secrets=["crm"])
    told = [(fault.code, fault.path) for fault in found.faults if fault.severity == "error"]
    assert told == [("UNKNOWN_TOOL", "steps[0].tool"), ("INVALID_ARGS", "steps[1].args.to"),
                    ("UNKNOWN_REFERENCE", "steps[1].args.password")]  # fmt: skip
