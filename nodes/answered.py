"""Whether an answer is one at all: cut, refused, filtered, empty and called the wrong way are told apart here."""

from __future__ import annotations

from nodes.model_errors import (
    AnswerCut,
    AnswerEmpty,
    AnswerFiltered,
    AnswerRefused,
    AnswerUnusable,
    MalformedCall,
    SeveralCalls,
)
from nodes.model_modes import ANSWER
from nodes.models import ModelAnswer
from plans.endings import CUT, FILTERED, REFUSED
from plans.values import printable

MAX_REFUSAL = 300
"""Longest part of a model's refusal that is told."""


def unusable(answer: ModelAnswer) -> AnswerUnusable | None:
    """Why a whole answer is of no use, whatever was asked for; None where its text can be read."""
    if answer.refusal is not None:
        words = printable(" ".join(answer.refusal.split()), MAX_REFUSAL)
        return _of(AnswerRefused, answer, f"the model declines: {words}")
    if answer.finish_reason == REFUSED:
        return _of(AnswerRefused, answer, "the model declines")
    if answer.finish_reason == FILTERED:
        return _of(AnswerFiltered, answer, "a content filter stopped the model's answer")
    if answer.finish_reason == CUT:
        return _of(AnswerCut, answer, "the model's answer was cut off at its length limit; it is never completed")
    if (times := max(len(answer.calls), answer.answers)) > 1:
        message = f"the model answered {times} times at once; expected one answer, and none is chosen"
        return _of(SeveralCalls, answer, message)
    if answer.calls and answer.calls[0] != ANSWER:
        name = printable(answer.calls[0], 80)
        return _of(MalformedCall, answer, f"the model called {name!r} instead of answering; call {ANSWER!r} once")
    if not answer.text.strip():
        return _of(AnswerEmpty, answer, "the model's answer is empty")
    return None


def _of(kind: type[AnswerUnusable], answer: ModelAnswer, message: str) -> AnswerUnusable:
    failed = kind(message, raw=answer.text or answer.refusal or "", answer=answer)
    failed.spent = answer.spent
    return failed
