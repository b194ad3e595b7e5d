"""Limits, usage, decisions, faults, goals, names and errors: the small values that travel everywhere."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plans import errors
from plans.decisions import DECISION, ApprovalRequest, Approve, Edit, Reject, Respond
from plans.errors import ConfigurationError, InvalidInput, PlanRejected, SurestepError, UsageError
from plans.failure import CODES
from plans.faults import MAX_WORDS, Fault, FaultCode, errors_among
from plans.goals import MAX_GOAL, check_goal
from plans.limits import Limits, Usage
from plans.values import clean
from plans.wording import kind_of, listed, nearest

AMOUNTS = st.fixed_dictionaries({}, optional={name: st.integers(0, 1_000) for name in Usage.model_fields})


def test_the_default_limits_are_the_documented_ones() -> None:
    """50 steps, 3 attempts, 2 local and 3 global replans, 2 redrafts, 8 at once; time, tokens and cost uncapped."""
    limits = Limits()
    assert (limits.max_steps, limits.max_attempts, limits.concurrency) == (50, 3, 8)
    assert (limits.max_local_replans, limits.max_global_replans, limits.max_redrafts) == (2, 3, 2)
    assert (limits.max_wall_s, limits.max_tokens, limits.max_cost) == (None, None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_steps": 0},
        {"max_steps": 100_001},
        {"max_steps": "many"},
        {"max_attempts": 0},
        {"max_local_replans": -1},
        {"max_wall_s": 0},
        {"max_tokens": 0},
        {"max_cost": 0},
        {"concurrency": 0},
        {"max_speed": 1},
    ],
    ids=str,
)
def test_a_senseless_limit_is_refused(wrong: dict[str, Any]) -> None:
    """A limit of nothing, below nothing, or of an unknown kind is an error, not a default."""
    with pytest.raises(ValidationError):
        Limits(**wrong)


@given(AMOUNTS, AMOUNTS)
def test_usage_adds_up_in_any_order(one: dict[str, float], other: dict[str, float]) -> None:
    """Spending is counted once each time, whatever comes first, and the usage before is left alone."""
    start = Usage(steps=1, cost=0.5)
    assert start.plus(**one).plus(**other) == start.plus(**other).plus(**one)
    assert start == Usage(steps=1, cost=0.5)
    assert start.plus(**one).tokens == one.get("prompt_tokens", 0) + one.get("completion_tokens", 0)
    assert start.plus() == start


@pytest.mark.parametrize("decision", [Approve(), Reject(message="no"), Edit(args={"a": 1}), Respond("it happened")])
def test_a_decision_survives_json(decision: Approve | Reject | Edit | Respond) -> None:
    """What a person answered is the same after storage, by its type."""
    assert DECISION.validate_json(decision.model_dump_json()) == decision


@pytest.mark.parametrize(
    "answer",
    [
        "yes",
        True,
        None,
        ["approve"],
        {},
        {"type": "ok"},
        {"type": "Approve"},
        {"type": "approve", "args": {}},
        {"type": "edit"},
        {"type": "edit", "args": []},
        {"type": "respond"},
        {"type": "reject", "message": 1},
    ],
    ids=str,
)
def test_anything_but_an_exact_decision_is_refused(answer: object) -> None:
    """A truthy answer is no approval."""
    with pytest.raises(ValidationError):
        DECISION.validate_python(answer)


def test_an_approval_request_is_bound_to_its_arguments() -> None:
    """It is frozen and survives JSON with its times and its hash."""
    asked = ApprovalRequest(
        approval_id="a", run_id="r", thread_id="t", step_id="s", tool="send", args={"x": [1]}, args_sha256="0" * 64,
        risk="high", reason="risk", created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )  # fmt: skip
    assert ApprovalRequest.model_validate_json(asked.model_dump_json()) == asked
    with pytest.raises(ValidationError, match="frozen"):
        asked.args = {}  # type: ignore[misc]


@given(st.text(), st.text(), st.none() | st.text())
def test_a_fault_is_one_line_that_can_be_printed_and_stored(message: str, path: str, fix: str | None) -> None:
    """Whatever strangers wrote into a plan, what is said about it breaks no log, prompt or table."""
    fault = Fault(code="SCHEMA_INVALID", message=message, path=path, fix=fix)
    assert fault.model_dump() == clean(fault.model_dump())
    assert str(fault).isprintable()
    assert len(str(fault)) < 20 * MAX_WORDS
    assert Fault.model_validate_json(fault.model_dump_json()) == fault


def test_a_fault_reads_as_a_sentence_with_its_fix() -> None:
    """Code, step, what is wrong, what would be right; warnings keep nothing from running."""
    error = Fault(code="UNKNOWN_TOOL", step="s1", message="there is no tool 'x'", fix="did you mean 'y'?")
    warning = Fault(code="NO_CRITERION", message="m", severity="warning")
    assert str(error) == "UNKNOWN_TOOL: step s1: there is no tool 'x' (did you mean 'y'?)"
    assert str(warning) == "NO_CRITERION: m"
    assert errors_among([warning, error]) == [error]
    with pytest.raises(ValidationError):
        Fault.model_validate({"code": "UNHEARD_OF", "message": "m"})


def test_fault_codes_are_spelt_like_failure_codes() -> None:
    """Capitals and underscores, and where both tables know a word it is the same word."""
    codes = get_args(FaultCode)
    assert all(code == code.upper() and code.replace("_", "").isalpha() for code in codes)
    assert len(codes) == len(set(codes))
    assert {"INVALID_ARGS", "NOT_PERMITTED", "RULE_VIOLATED", "REPEATED_EFFECT", "NO_PROGRESS"} <= set(codes) & set(
        CODES
    )


@pytest.mark.parametrize(
    "goal", ["Why is order A1 late?", "查订单 A1 为什么迟到", "x", "x" * MAX_GOAL, "line\nbreak\ttab 🙂"]
)
def test_a_goal_in_any_language_is_taken(goal: str) -> None:
    """What a person may write is given back, without the white space around it."""
    assert check_goal(f"  {goal}\n") == goal


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("", "is empty"),
        ("  \n\t ", "is empty"),
        ("x" * (MAX_GOAL + 1), "20,001 characters"),
        ("x" * 100_000, "100,000 characters"),
        ("a\x00b", r"U\+0000"),
        ("a\ud800", r"U\+D800"),
    ],
    ids=lambda value: str(value)[:12].encode("unicode_escape").decode(),
)
def test_a_goal_that_cannot_be_used_is_refused_in_plain_words(goal: str, said: str) -> None:
    """Empty, a book, or unstorable: the sentence says what came and what to do, and does not repeat the goal."""
    with pytest.raises(InvalidInput, match=said) as refused:
        check_goal(goal)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("get_ordr", "get_order"),
        ("GET-ORDER", "get_order"),
        ("get order", "get_order"),
        ("getorder", "get_order"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, meant: str | None) -> None:
    """Spelling counts first, then likeness; a stranger is nobody's neighbour."""
    assert nearest(name, ["send_reply", "get_order", "list_orders"]) == meant


def test_among_very_many_names_only_spelling_counts() -> None:
    """Looking for likeness among thousands of names for thousands of faults would take for ever."""
    many = [f"step_{n}" for n in range(5_000)]
    assert nearest("STEP-77", many) == "step_77"
    assert nearest("stpe_77", many) is None
    assert nearest("x" * 1_000_000, ["y"]) is None


def test_names_in_a_sentence_are_few() -> None:
    """A long list is cut, and says so."""
    assert listed([]) == "none"
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(n) for n in range(10)], 3) == "0, 1, 2 and 7 more"


def test_values_are_told_by_kind_never_shown() -> None:
    """A message about a value does not repeat it."""
    shown: list[Any] = [None, True, 1, 1.5, "secret", {}, [], (), b"x"]
    kinds = [kind_of(value) for value in shown]
    expected = ["null", "a boolean", "a number", "a number", "text", "an object", "a list", "a list", "a bytes"]
    assert kinds == expected


def test_the_tree_of_errors_is_the_one_that_is_drawn() -> None:
    """Every error stands in the docstring of its module under its parent, with the exit code that it ends with."""
    drawn = inspect.getdoc(errors) or ""
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, SurestepError)]
    assert len(classes) > 10
    for each in classes:
        assert each.__name__ in drawn
        assert each.__doc__
        assert each.exit_code in (1, 2, 6)
    usage = {each.exit_code: each for each in classes if issubclass(each, ConfigurationError | UsageError)}
    assert set(usage) == {2, 6}
    assert usage[6] is errors.ThreadBusy


def test_a_rejected_plan_carries_its_faults() -> None:
    """Whoever catches it can show each fault with its place."""
    fault = Fault(code="PLAN_EMPTY", message="m")
    assert PlanRejected("refused", [fault]).faults == (fault,)
    assert PlanRejected("refused").faults == ()
