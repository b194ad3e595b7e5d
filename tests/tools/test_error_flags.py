"""Tests of results that say of themselves that the tool failed, and of what counts as an empty result."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from plans.errors import ConfigurationError
from tests.tools.calls import code_of, context, ports, tool_of
from tools.call import CallFailure, Outcome, call
from tools.spec import Effect, ErrorFlag


class Order(BaseModel):
    total: int


async def outcome_of(value: Any, **spec: Any) -> Outcome:
    """What a call of a tool gives that returns this value."""
    return await call(tool_of(lambda: value, name="t", retry={"max_attempts": 1}, **spec), {}, context(), ports())


def said(outcome: Outcome) -> str:
    """The sentence of a failure."""
    assert isinstance(outcome, CallFailure)
    return outcome.failure.message


@pytest.mark.parametrize(
    ("flags", "value", "code", "sentence"),
    [
        ("error", {"error": None, "total": 3}, "OK", ""),
        ("error", {"error": "no such order"}, "TOOL_ERROR", "t answered that it failed"),
        ({"when": "error", "message_from": "error"}, {"error": "no such order"}, "TOOL_ERROR",
         "t answered that it failed: no such order"),
        ({"when": "error", "message": "the shop said no", "message_from": "error.text"}, {"error": {"text": "a\nb"}},
         "TOOL_ERROR", "the shop said no: a b"),
        (ErrorFlag(when="ok == `false`", code="UNAVAILABLE", message="it is down"), {"ok": False}, "UNAVAILABLE",
         "it is down"),
        ([{"when": "code == `404`", "code": "NOT_FOUND"}, {"when": "code >= `400`"}], {"code": 404}, "NOT_FOUND",
         "t answered that it failed"),
        ([{"when": "code == `404`", "code": "NOT_FOUND"}, {"when": "code >= `400`"}], {"code": 500}, "TOOL_ERROR",
         "t answered that it failed"),
        ({"when": "error", "message_from": "error"}, {"error": {"deep": [1]}}, "TOOL_ERROR",
         "t answered that it failed"),
        ({"when": "error", "message_from": "length(error)"}, {"error": 4}, "TOOL_ERROR", "t answered that it failed"),
    ],
)  # fmt: skip
async def test_a_flagged_result_is_a_failure_in_the_words_of_the_spec(
    flags: Any, value: Any, code: str, sentence: str
) -> None:
    """The first condition that holds decides code and sentence; a result that raises no flag is a result."""
    outcome = await outcome_of(value, error_when=flags)
    assert code_of(outcome) == code
    assert code == "OK" or said(outcome) == sentence


async def test_an_error_body_is_judged_before_the_declared_type() -> None:
    """HTTP 200 with an error body is the failure that the body tells of, not a result of the wrong type."""

    def get_order() -> Order:
        return {"error": "locked"}  # type: ignore[return-value]

    tool = tool_of(get_order, error_when=ErrorFlag(when="error", code="CONFLICT"), retry={"max_attempts": 1})
    assert code_of(await call(tool, {}, context(), ports())) == "CONFLICT"


async def test_a_condition_that_cannot_be_judged_lets_no_result_pass() -> None:
    """A guard that stumbles is no success: the result is refused, and the sentence says why."""
    outcome = await outcome_of({"errors": 3}, error_when="length(errors) > `0`")
    assert (code_of(outcome), "cannot be told" in said(outcome)) == ("OUTPUT_INVALID", True)


@pytest.mark.parametrize(
    ("effect", "certain", "code", "in_doubt"),
    [
        ("read", False, "TOOL_ERROR", False),
        ("transactional", False, "TOOL_ERROR", False),
        ("idempotent", False, "TOOL_ERROR", True),
        ("idempotent", True, "TOOL_ERROR", False),
        ("irreversible", False, "UNKNOWN_OUTCOME", True),
        ("irreversible", True, "TOOL_ERROR", False),
    ],
)
async def test_only_a_spec_that_is_certain_says_that_nothing_happened(
    effect: Effect, certain: bool, code: str, in_doubt: bool
) -> None:
    """A tool that answered with an error may have acted: its effect is unknown unless the spec promises otherwise."""
    flag = ErrorFlag(when="error", certain=certain)
    outcome = await outcome_of({"error": "x"}, error_when=flag, effect=effect)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt) == (code, in_doubt)


async def test_a_flagged_read_is_retried_where_its_code_allows() -> None:
    """RATE_LIMITED in a body is RATE_LIMITED: retried like the status would be."""
    answers = [{"error": "slow down"}, {"total": 3}]
    tool = tool_of(
        lambda: answers.pop(0),
        name="t",
        error_when=ErrorFlag(when="error", code="RATE_LIMITED"),
        retry={"initial_interval": 0, "jitter": 0},
    )
    assert code_of(await call(tool, {}, context(), ports())) == "OK"
    assert answers == []


async def test_the_body_goes_to_the_raw_text_and_its_words_are_cut() -> None:
    """A failure shows at most 300 characters of the result; the whole is in the raw text, bounded too."""
    outcome = await outcome_of(
        {"error": "x" * 50_000, "id": "body-7"}, error_when={"when": "error", "message_from": "error"}
    )
    assert isinstance(outcome, CallFailure)
    assert 300 <= len(outcome.failure.message) < 350
    assert 10_000 < len(outcome.raw) < 70_000
    assert "body-7" not in outcome.failure.message


@pytest.mark.parametrize(
    ("part", "value", "code"),
    [
        ("items", {"items": [1]}, "OK"),
        ("items", {"items": []}, "OUTPUT_EMPTY"),
        ("items", {}, "OUTPUT_EMPTY"),
        ("items", [], "OUTPUT_EMPTY"),
        ("items", {"items": 0}, "OK"),
        ("[0].name", [{"name": ""}], "OUTPUT_EMPTY"),
        ("length(items)", {"items": 3}, "OUTPUT_INVALID"),
        (True, {}, "OUTPUT_EMPTY"),
        (True, {"items": []}, "OK"),
    ],
)
async def test_a_part_of_a_result_can_be_declared_never_empty(part: Any, value: Any, code: str) -> None:
    """never_empty="items" is about that part, True about the whole; nothing there is OUTPUT_EMPTY, no success."""
    outcome = await outcome_of(value, never_empty=part)
    assert code_of(outcome) == code
    assert code != "OUTPUT_EMPTY" or ("at 'items'" in said(outcome)) == (part == "items")


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"error_when": "error ==="}, "an error_when that cannot be read"),
        ({"error_when": {"when": "error", "message_from": "a["}}, "a message_from in error_when that cannot be read"),
        ({"never_empty": "items["}, "a never_empty that cannot be read"),
        ({"error_when": {"when": "error", "code": "OOPS"}}, "error_when[0].code='OOPS'"),
        ({"error_when": {"if": "error"}}, "error_when[0].if"),
        ({"never_empty": ""}, "never_empty"),
    ],
)
def test_conditions_that_cannot_be_read_are_refused_at_load(declared: dict[str, Any], told: str) -> None:
    """A tool whose conditions make no sense is never registered."""
    with pytest.raises(ConfigurationError, match="tool 't'") as refused:
        tool_of(lambda: 1, name="t", **declared)
    assert told in str(refused.value)
