"""The table of failure codes is total: every code has a class, an action and a verdict, and each of those occurs."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from plans.failure import CODES, Action, Failure, FailureClass, ToolFailure, VerdictName

OF_CLASS = {
    "hard": "NOT_FOUND NOT_PERMITTED INVALID_ARGS INVALID_INPUT RULE_VIOLATED UNRESOLVED_REFERENCE "
    "OUTPUT_INVALID OUTPUT_EMPTY TOOL_ERROR RESOURCE_LIMIT REPEATED_FAILURE "
    "MODEL_ANSWER_INVALID MODEL_REFUSED MODEL_NOT_CONFIGURED PLAN_INVALID",
    "soft": "TIMEOUT RATE_LIMITED UNAVAILABLE CONFLICT BREAKER_OPEN POOL_FULL",
    "semantic": "CRITERION_FALSE PREMISE_BROKEN INPUT_CHANGED PRECONDITION_FAILED NEW_INSTRUCTION ANSWERED",
    "unknown": "UNKNOWN_OUTCOME",
    "policy": "REJECTED APPROVAL_EXPIRED REPEATED_EFFECT TOOL_DISABLED",
    "limit": "LIMIT_STEPS LIMIT_ATTEMPTS LIMIT_REPLANS LIMIT_TIME LIMIT_TOKENS LIMIT_COST NO_PROGRESS",
}
FIRST_VERDICTS = {
    "hard": {"local_replan", "fallback", "finish"},
    "soft": {"retry", "fallback"},
    "semantic": {"global_replan"},
    "unknown": {"ask"},
    "policy": {"finish", "fallback"},
    "limit": {"finish"},
}


def test_every_code_stands_in_the_table_once_under_its_class() -> None:
    """No code without a row, no row without a code."""
    assert {code: row.class_ for code, row in CODES.items()} == {
        code: class_ for class_, codes in OF_CLASS.items() for code in codes.split()
    }


@pytest.mark.parametrize("code", CODES)
def test_a_row_names_an_action_and_a_verdict_that_exist_and_fit_the_class(code: str) -> None:
    """The table is written in the one spelling that state, Studio, command line and docs share."""
    row = CODES[code]
    assert row.class_ in get_args(FailureClass)
    assert row.action in get_args(Action)
    assert row.verdict in get_args(VerdictName)
    assert row.verdict in FIRST_VERDICTS[row.class_]
    assert code == code.upper()


def test_every_class_and_every_action_is_used() -> None:
    """A class or an action that no code leads to would be a promise without a way there."""
    assert {row.class_ for row in CODES.values()} == set(get_args(FailureClass))
    assert {row.action for row in CODES.values()} == set(get_args(Action))


@pytest.mark.parametrize("code", CODES)
def test_a_retry_is_only_for_what_may_go_away(code: str) -> None:
    """What would be the same again, what may have happened and what was refused is never tried again blindly."""
    row = CODES[code]
    retries = row.action.startswith("retry") or row.verdict == "retry"
    assert not retries or row.class_ == "soft"


def test_a_model_sees_code_sentence_action_and_delay_only() -> None:
    """Nothing rawer than that reaches a prompt."""
    failure = Failure(
        code="RATE_LIMITED", message="too many calls", delay_s=2.5, step_id="s1", tool="t", raw_ref="secret"
    )
    assert failure.for_model() == {
        "code": "RATE_LIMITED",
        "message": "too many calls",
        "suggested_action": "retry_with_backoff",
        "delay_s": 2.5,
    }
    assert failure.class_ == "soft"


def test_a_tool_can_only_fail_with_a_code_of_the_table() -> None:
    """A misspelt code is told to whoever wrote the tool, with the codes there are."""
    with pytest.raises(ValueError, match="unknown failure code 'NOTFOUND'; known: NOT_FOUND"):
        ToolFailure("NOTFOUND", "gone")
    raised = ToolFailure("NOT_FOUND", "order A1 is gone", delay_s=1)
    assert (raised.code, raised.message, str(raised), raised.delay_s) == (
        "NOT_FOUND",
        "order A1 is gone",
        "order A1 is gone",
        1,
    )


def test_a_failure_is_a_frozen_strict_value() -> None:
    """Unknown fields are refused and nothing can be changed."""
    with pytest.raises(ValidationError):
        Failure.model_validate({"code": "TIMEOUT", "message": "m", "stack": "trace"})
    with pytest.raises(ValidationError, match="frozen"):
        Failure(code="TIMEOUT", message="m").code = "X"  # type: ignore[misc]
    assert Failure.model_validate_json(Failure(code="TIMEOUT", message="m").model_dump_json()) == Failure(
        code="TIMEOUT", message="m"
    )
