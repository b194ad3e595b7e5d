"""Tests of what is decided about a failure: one table over classes, total over codes, and the order of severity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.fold import fold
from nodes.state import Verdict
from nodes.verdicts import (
    FIRST,
    MOVES,
    OF_ALTERNATIVES,
    SEVERITY,
    VERDICT_OF,
    Move,
    Standing,
    backoff_s,
    decide,
    most_severe,
)
from plans.failure import CODES, Failure, VerdictName
from tests.nodes.rows import Row, a_plan, a_step, begun, decided, failed, planned

FRESH = Standing(
    tries=1,
    max_attempts=3,
    resendable=False,
    alternative="other",
    can_replan=True,
    local_replans_left=2,
    global_replans_left=3,
    is_child=False,
    tolerated=False,
)
POOR = replace(FRESH, tries=3, alternative=None, can_replan=False)


def verdicts_until_the_end(code: str, standing: Standing) -> list[VerdictName]:
    """What is decided about one failure that comes back again and again, as each means is used up."""
    found: list[VerdictName] = []
    while not found or found[-1] not in ("finish", "next", "ask"):
        made = decide(Failure(code=code, message="no", step_id="s1", attempt=1), standing, now=0.0)
        found.append(made.verdict)
        standing = replace(standing, simpler_plan=False) if made.degraded else used_up(standing, made.verdict)
    return found


def used_up(standing: Standing, verdict: VerdictName) -> Standing:
    """The standing after this verdict was applied and did not help."""
    match verdict:
        case "retry":
            return replace(standing, tries=standing.tries + 1)
        case "fallback":
            return replace(standing, alternative=None)
        case "local_replan":
            return replace(standing, local_replans_left=standing.local_replans_left - 1)
        case _:
            return replace(standing, global_replans_left=standing.global_replans_left - 1)


LOCAL: list[VerdictName] = ["local_replan", "local_replan"]
GLOBAL: list[VerdictName] = ["global_replan", "global_replan", "global_replan"]
BY_CLASS: dict[str, list[VerdictName]] = {
    "soft": ["retry", "retry", "fallback", *LOCAL, *GLOBAL, "finish"],
    "hard": [*LOCAL, "fallback", *GLOBAL, "finish"],
    "semantic": [*GLOBAL, "finish"],
    "unknown": ["ask"],
    "policy": ["finish"],
    "limit": ["finish"],
}
OWN: dict[str, list[VerdictName]] = {
    "BREAKER_OPEN": ["fallback", "retry", "retry", *LOCAL, *GLOBAL, "finish"],
    "TOOL_DISABLED": ["fallback", *LOCAL, *GLOBAL, "finish"],
    "REPEATED_FAILURE": ["fallback", *LOCAL, *GLOBAL, "finish"],
    "MODEL_NOT_CONFIGURED": ["finish"],
    "PLAN_INVALID": ["finish"],
}


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_tried_in_its_order_and_then_ends(code: str) -> None:
    """Every code has its row: what is tried first, then next, and that it ends."""
    assert verdicts_until_the_end(code, FRESH) == OWN.get(code, BY_CLASS[CODES[code].class_])


@pytest.mark.parametrize("code", CODES)
def test_the_first_verdict_is_the_one_that_the_table_of_codes_names(code: str) -> None:
    """The table that state, Studio and documents show says what is done first where everything is possible."""
    named = CODES[code].verdict
    first = decide(Failure(code=code, message="no", step_id="s1", attempt=1), FRESH, now=0.0).verdict
    assert first == named


MENDED = {"soft", "hard", "semantic"}
"""Classes of failures that repairs are for; what ends otherwise is nobody's to mend."""
NO_REPAIR = {"MODEL_NOT_CONFIGURED", "PLAN_INVALID"}


@pytest.mark.parametrize("code", CODES)
def test_what_nothing_mends_goes_to_the_template_and_then_to_a_person(code: str) -> None:
    """Where the step is needed: behind every other repair of its row, first the simplified plan, then a ticket."""
    standing = replace(FRESH, needed=True, simpler_plan=True, asks=True)
    found = verdicts_until_the_end(code, standing)
    before = verdicts_until_the_end(code, FRESH)
    is_mended = (CODES[code].class_ in MENDED and code not in NO_REPAIR) or code == "TOOL_DISABLED"
    assert found == ([*before[:-1], "global_replan", "ask"] if is_mended else before)


@pytest.mark.parametrize("code", CODES)
def test_what_the_plan_can_do_without_is_no_ticket(code: str) -> None:
    """A plan that says how it goes on is followed: neither a simpler plan nor a person stands before that."""
    standing = replace(POOR, tolerated=True, simpler_plan=True, asks=True)
    assert verdicts_until_the_end(code, standing) == verdicts_until_the_end(code, replace(POOR, tolerated=True))


@pytest.mark.parametrize("code", [code for code in CODES if CODES[code].class_ in MENDED])
def test_a_repair_that_came_to_nothing_gives_way_to_what_is_behind_it(code: str) -> None:
    """A failed local replan leads on to a global one, not to itself; a failed global one to the exhausted end."""
    failure = Failure(code=code, message="no", step_id="s1", attempt=1)
    rich = replace(FRESH, alternative=None, needed=True, simpler_plan=True, asks=True)

    def behind(after: Move) -> VerdictName:
        return decide(failure, rich, now=0.0, after=after).verdict

    if code not in NO_REPAIR:
        assert behind("local_replan") == "global_replan"
        simpler = decide(failure, rich, now=0.0, after="global_replan")
        assert (simpler.verdict, simpler.degraded, simpler.counted) == ("global_replan", True, False)
        assert behind("simpler_plan") == "ask"
    assert behind("ticket") == "finish"


def test_every_move_of_every_row_has_its_verdict() -> None:
    """The table names no move that could not be told."""
    rows = [*MOVES.values(), *FIRST.values(), *OF_ALTERNATIVES.values()]
    assert {move for row in rows for move in row} <= set(VERDICT_OF)
    assert set(VERDICT_OF.values()) == set(SEVERITY)
    assert set(MOVES) == {row.class_ for row in CODES.values()}


REFUSED: list[VerdictName] = ["fallback", *LOCAL, *GLOBAL, "finish"]
ALTERNATIVE: dict[str, list[VerdictName]] = {
    "INVALID_ARGS": REFUSED,
    "UNRESOLVED_REFERENCE": REFUSED,
    "NOT_PERMITTED": REFUSED,
    "RULE_VIOLATED": REFUSED,
    "REJECTED": ["fallback", "finish"],
    "APPROVAL_EXPIRED": ["fallback", "finish"],
}


@pytest.mark.parametrize("code", CODES)
def test_each_code_of_an_alternative_has_its_order_too(code: str) -> None:
    """An alternative that may not or cannot stand in leads to the next one; any other failure is one like any other."""
    expected = ALTERNATIVE.get(code, OWN.get(code, BY_CLASS[CODES[code].class_]))
    assert verdicts_until_the_end(code, replace(FRESH, stands_in=True)) == expected


@pytest.mark.parametrize("code", CODES)
def test_with_no_means_left_a_tolerated_failure_lets_the_run_go_on(code: str) -> None:
    """Where dependents can do without, the step is lost and the run is not; a limit, and a plan that does not hold, end
    it all the same."""
    verdict = decide(Failure(code=code, message="no", step_id="s1", attempt=1), replace(POOR, tolerated=True), now=0.0)
    expected = {"limit": "finish", "unknown": "ask"}.get(CODES[code].class_, "next")
    assert verdict.verdict == ("finish" if code == "PREMISE_BROKEN" else expected)


def test_an_unknown_outcome_is_sent_again_only_where_the_key_makes_that_safe() -> None:
    """Idempotent and transactional tools are called again; of any other a person is asked at once."""
    failure = Failure(code="UNKNOWN_OUTCOME", message="no answer", step_id="s1", attempt=1)
    assert decide(failure, replace(FRESH, resendable=True), now=0.0).verdict == "retry"
    assert decide(failure, replace(FRESH, resendable=True, tries=3), now=0.0).verdict == "ask"
    assert decide(failure, FRESH, now=0.0).verdict == "ask"


def test_a_child_of_a_list_is_never_planned_anew_alone() -> None:
    """A replan is about a step of the plan; of a child only a retry and an alternative are possible."""
    child = replace(FRESH, is_child=True, tolerated=True)
    assert verdicts_until_the_end("CONFLICT", child) == ["retry", "retry", "fallback", "next"]
    assert verdicts_until_the_end("NOT_FOUND", child) == ["fallback", "next"]


@pytest.mark.parametrize(
    ("code", "tries", "asked", "wait"),
    [
        ("TIMEOUT", 1, None, 1.0),
        ("TIMEOUT", 2, None, 2.0),
        ("TIMEOUT", 7, None, 4.0),
        ("RATE_LIMITED", 1, 30.0, 30.0),
        ("RATE_LIMITED", 2, 0.5, 2.0),
        ("CONFLICT", 2, None, 0.0),
        ("CONFLICT", 2, 3.0, 3.0),
    ],
)
def test_how_long_a_retry_waits(code: str, tries: int, asked: float | None, wait: float) -> None:
    """1, 2, 4 seconds, or what the other side asks for if that is longer; a conflict is tried again at once."""
    failure = Failure(code=code, message="no", step_id="s1", attempt=1, delay_s=asked)
    assert backoff_s(failure, tries) == wait
    verdict = decide(failure, replace(FRESH, tries=tries, max_attempts=9), now=100.0)
    assert verdict.not_before == 100.0 + wait


def test_of_equals_the_earliest_is_taken_first() -> None:
    """Verdicts of one severity are applied in the order in which they were made."""
    verdicts = [Verdict(verdict="fallback", step_id=name, attempt=1, code="TIMEOUT", reason="") for name in "abc"]
    taken = most_severe(verdicts)
    assert taken is not None
    assert taken.step_id == "a"
    assert most_severe([]) is None


QUEUED: tuple[VerdictName, ...] = ("fallback", "local_replan", "global_replan", "finish")
NAMES = tuple("abcdefgh")


@given(st.lists(st.sampled_from(QUEUED), min_size=1, max_size=len(NAMES)))
def test_whatever_the_mix_the_most_severe_goes_first_and_none_is_lost(mix: list[VerdictName]) -> None:
    """Several steps fail at once: verdicts are applied from the most severe down until a new plan or the end makes
    the rest pointless; each is applied, or answered by what was."""
    plan = a_plan(*(a_step(name) for name in NAMES))
    rows: list[Row] = [begun(), planned(plan)]
    for name, verdict in zip(NAMES, mix, strict=False):
        rows += [failed(name, code="TIMEOUT"), decided(name, 1, verdict, "TIMEOUT")]
    picture = fold(rows)
    assert [verdict.verdict for verdict in picture.queue] == mix
    applied: list[VerdictName] = []
    while (top := most_severe(picture.queue)) is not None and top.verdict != "finish":
        applied.append(top.verdict)
        picture.apply(*application(top, picture.plan and {step.id: step for step in picture.plan.steps}))
    assert applied == sorted(applied, key=SEVERITY.index, reverse=True)
    if "finish" in mix:
        assert applied == []
        return
    expected = [name for name in mix if name != "global_replan"] + ["global_replan"] * ("global_replan" in mix)
    assert sorted(applied) == sorted(expected)
    retried = [name for name, verdict in zip(NAMES, mix, strict=False) if verdict in ("fallback", "local_replan")]
    assert all(picture.status(name) == "pending" for name in retried)


def application(verdict: Verdict, steps: Any) -> Row:
    """The row that applying a verdict writes: an alternative, or a revision in which the failed step is another."""
    if verdict.verdict == "fallback":
        return "fallback", verdict.step_id, 1, {"tool": "other", "degraded": "answered by other"}
    changed = [
        step.model_copy(update={"tool": "mended"}) if step.id == verdict.step_id else step for step in steps.values()
    ]
    purpose = "local" if verdict.verdict == "local_replan" else "global"
    return planned(a_plan(*changed, revision=2), purpose, [verdict.key])
