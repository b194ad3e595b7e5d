"""Tests of the last layer: any exception becomes a failure, and control flow of others passes through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel

from plans.failure import ToolFailure
from tests.tools.calls import a_call, code_of, tool_of
from tools.normalise import MAX_MESSAGE, MAX_RAW, call_tool, lost, plain_sentence
from tools.outcome import CallFailure, Success
from tools.spec import EFFECTS, Effect


class Order(BaseModel):
    order_id: str


async def failing(error: BaseException, effect: Effect = "read", **declared: Any) -> CallFailure:
    """The outcome of a tool that raises this."""

    async def function() -> None:
        raise error

    outcome = await call_tool(a_call(tool_of(function, name="t", effect=effect, **declared)))
    assert isinstance(outcome, CallFailure)
    return outcome


async def test_a_result_passes() -> None:
    """What a tool returns is a success."""
    assert await call_tool(a_call(tool_of(lambda: {"a": 1}, name="t"))) == Success({"a": 1})


async def test_a_failure_knows_its_step_and_keeps_the_raw_text_apart() -> None:
    """The message is a plain sentence; the raw text is beside it and has the traceback, secrets blanked there too."""
    outcome = await failing(KeyError("order A7, password=hunter2"))
    failure = outcome.failure
    assert (failure.code, failure.message) == ("TOOL_ERROR", "t failed with KeyError")
    assert (failure.step_id, failure.tool, failure.attempt, failure.raw_ref) == ("s1", "t", 2, None)
    assert "order A7, password=***" in outcome.raw
    assert "Traceback" in outcome.raw
    assert "hunter2" not in failure.model_dump_json()


MATRIX: list[tuple[BaseException, list[str]]] = [
    # in the order of EFFECTS: read, transactional, idempotent, irreversible
    (TimeoutError(), ["TIMEOUT", "TIMEOUT", "UNKNOWN_OUTCOME", "UNKNOWN_OUTCOME"]),
    (ConnectionResetError(), ["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "UNKNOWN_OUTCOME"]),
    (ConnectionRefusedError(), ["UNAVAILABLE"] * 4),
    (KeyError("x"), ["TOOL_ERROR", "TOOL_ERROR", "TOOL_ERROR", "UNKNOWN_OUTCOME"]),
    (SystemExit(1), ["TOOL_ERROR", "TOOL_ERROR", "TOOL_ERROR", "UNKNOWN_OUTCOME"]),
    (ToolFailure("NOT_FOUND", "no such order"), ["NOT_FOUND"] * 4),
    (ToolFailure("TIMEOUT", "queue is full"), ["TIMEOUT"] * 4),
    (ToolFailure("UNKNOWN_OUTCOME", "cut off"), ["UNKNOWN_OUTCOME"] * 4),
]


@pytest.mark.parametrize(("error", "codes"), MATRIX, ids=[repr(error) for error, _ in MATRIX])
async def test_what_a_failure_means_depends_on_the_effect(error: BaseException, codes: list[str]) -> None:
    """An irreversible effect that may have happened is unknown whatever was raised; a tool's own word is taken."""
    assert [(await failing(error, effect)).failure.code for effect in EFFECTS] == codes


@pytest.mark.parametrize(
    ("error", "doubts"),
    [
        (ConnectionResetError(), [False, False, True, True]),
        (ConnectionRefusedError(), [False] * 4),
        (ToolFailure("TIMEOUT", "said"), [False] * 4),
    ],
)
async def test_a_possible_effect_is_marked(error: BaseException, doubts: list[bool]) -> None:
    """in_doubt says that an effect may have happened, also where the code alone does not."""
    assert [(await failing(error, effect)).in_doubt for effect in EFFECTS] == doubts


async def test_a_tools_own_failure_is_taken_word_for_word() -> None:
    """Code, sentence and wish to wait are the tool's; what could not be stored or shown is taken out."""
    outcome = await failing(ToolFailure("RATE_LIMITED", "slow\0 down\n\ud800now ", delay_s=3))
    assert (outcome.failure.message, outcome.failure.delay_s) == ("slow down now", 3)
    assert plain_sentence("\n\0") == "the tool gave no reason"
    assert len(plain_sentence("x" * 10_000)) == MAX_MESSAGE


@pytest.mark.parametrize(
    ("effect", "code"),
    [
        ("read", "OUTPUT_INVALID"),
        ("transactional", "OUTPUT_INVALID"),
        ("idempotent", "OUTPUT_INVALID"),
        ("irreversible", "UNKNOWN_OUTCOME"),
    ],
)
async def test_a_bad_result_of_an_effect_does_not_say_that_nothing_happened(effect: Effect, code: str) -> None:
    """The call came back, so an irreversible effect with an unreadable result is unknown, never a plain failure."""

    def function() -> Order:
        return {"id": 3}  # type: ignore[return-value]

    outcome = await call_tool(a_call(tool_of(function, name="t", effect=effect)))
    assert code_of(outcome) == code


async def test_an_answer_that_a_tool_cannot_read_is_a_bad_output() -> None:
    """A pydantic model that refuses what a service answered is OUTPUT_INVALID, without the values."""

    def function() -> None:
        Order.model_validate({"order_id": 5550100200})

    outcome = await call_tool(a_call(tool_of(function, name="t")))
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.code == "OUTPUT_INVALID"
    assert "5550100200" not in outcome.failure.message
    assert "5550100200" in outcome.raw


class Interrupted(GraphInterrupt):
    """A kind of interrupt of the user's own."""


@pytest.mark.parametrize(
    "error",
    [
        GraphInterrupt(()), Interrupted(()), asyncio.CancelledError(), KeyboardInterrupt(),
        ExceptionGroup("several", [ValueError(), GraphInterrupt(())]),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_control_flow_passes_through(error: BaseException) -> None:
    """Cancellation, Ctrl-C and LangGraph's interrupts are not failures of a tool."""
    running = call_tool(a_call(tool_of(asynchronous(error), name="t")))
    with pytest.raises(type(error)):
        running.send(None)


def asynchronous(error: BaseException) -> Any:
    """An async function that raises this."""

    async def function() -> None:
        raise error

    return function


async def test_one_error_in_a_task_group_is_that_error() -> None:
    """A tool that uses a TaskGroup fails with what failed in it; several different failures are a TOOL_ERROR."""
    assert (
        await failing(ExceptionGroup("one", [ExceptionGroup("inner", [ToolFailure("NOT_FOUND", "x")])]))
    ).failure.code == "NOT_FOUND"
    assert (await failing(ExceptionGroup("two", [TimeoutError(), KeyError()]))).failure.code == "TOOL_ERROR"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_an_exception_without_text_is_no_problem() -> None:
    """An exception that cannot even be printed is normalised like any other."""
    outcome = await failing(Unprintable())
    assert outcome.failure.message == "t failed with Unprintable"
    assert "Unprintable" in outcome.raw


async def test_raw_text_can_always_be_stored() -> None:
    """The raw text is cut to its end where it is very long, and holds neither NUL nor lone surrogates."""
    outcome = await failing(ValueError("a\0b\ud800" + "x" * 200_000))
    assert len(outcome.raw) <= MAX_RAW
    outcome = await failing(ValueError("a\0b\ud800"))
    outcome.raw.encode()
    assert "a\\x00b\\ud800" in outcome.raw


def test_a_lost_call_is_unknown_only_where_it_may_have_acted() -> None:
    """A deadline of a read or a rolled back transaction is a timeout; of other effects it is an unknown outcome."""
    codes = [code_of(lost(a_call(tool_of(lambda: 1, name="t", effect=e)), "TIMEOUT", "late")) for e in EFFECTS]
    assert codes == ["TIMEOUT", "TIMEOUT", "UNKNOWN_OUTCOME", "UNKNOWN_OUTCOME"]
