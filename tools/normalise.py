"""Last layer: whatever a tool raises becomes a failure with a code, a plain sentence and the raw text apart.

Here stands the only `except Exception` of the tree. Cancellation, Ctrl-C and LangGraph's control flow pass through.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from plans.failure import ToolFailure
from plans.values import JSON
from tools.classify import Meaning, meaning_of
from tools.outcome import Call, CallFailure, Outcome, Success, failure, refused
from tools.output import BadOutput
from tools.redaction import lent, redacted
from tools.spec import Effect

LATE_EFFECTS: frozenset[Effect] = frozenset({"idempotent", "irreversible"})
"""Effects that may have happened when no answer came. A transactional tool's has not: its write commits only together
with the record of its result, and a failed call has none."""

MAX_MESSAGE = 2_000
MAX_RAW = 64_000


@dataclass
class Caught:
    """What was raised inside of `catching`, if anything."""

    error: BaseException | None = None


@contextmanager
def catching() -> Iterator[Caught]:
    """Keep an exception as a value. sys.exit in somebody's code is an error of that code, not an end of ours."""
    caught = Caught()
    try:
        yield caught
    except (Exception, SystemExit) as error:
        if _is_control_flow(error):
            raise
        caught.error = error


async def call_tool(call: Call) -> Outcome:
    """Make the call and give its outcome; nothing that a tool raises gets past here as an exception. The secrets that
    its arguments stand for are in them here and nowhere else."""
    vault, tool, run_id = call.ports.vault, call.tool, call.ctx.run_id
    if vault is None:
        return await _made(call, call.args)
    try:
        opened = await vault.open(run_id, tool, call.args)
    except ToolFailure as refusal:
        return refused(call, refusal.code, refusal.message)
    if opened.secrets and (broken := tool.breaches(opened.args)):
        return refused(call, "RULE_VIOLATED", broken[0].sentence)
    with lent(opened.secrets.values()):
        outcome = await _made(call, opened.args)
    if isinstance(outcome, Success):
        return replace(outcome, value=await vault.clean(run_id, outcome.value, tool, opened))
    message = vault.clean_text(outcome.failure.message, opened)
    failed = outcome.failure.model_copy(update={"message": message})
    return replace(outcome, failure=failed, raw=vault.clean_text(outcome.raw, opened))


async def _made(call: Call, args: Mapping[str, JSON]) -> Outcome:
    value = None
    with catching() as caught:
        value = await call.tool.invoke(args, call.ctx)
    return Success(value) if caught.error is None else _failed(call, caught.error)


def lost(call: Call, code: str, message: str) -> CallFailure:
    """The failure of a call that was made and of whose effect nothing is known."""
    return _settled(call, Meaning(code, message), message, "")


class Told(NamedTuple):
    """What an exception says: its meaning, a sentence about this call (empty: the meaning's own), and the raw text."""

    meaning: Meaning
    message: str
    raw: str


class ToldApart(Exception):
    """What was raised in another process; of the exception itself only what it says has come over."""

    def __init__(self, told: Told) -> None:
        super().__init__(told.message or told.meaning.said)
        self.told = told


def told_of(error: BaseException, now: float) -> Told:
    """What this exception says, wherever it was raised. `now` is wall time."""
    error = _single(error)
    if isinstance(error, ToldApart):
        return error.told
    raw = raw_text(error)
    if isinstance(error, ToolFailure):
        # A tool's own word about what happened, except that a bad result is ours, about a call that did return.
        certain = error.certain if isinstance(error, BadOutput) else True
        return Told(Meaning(error.code, "", certain, error.delay_s), plain_sentence(error.message), raw)
    if _is_validation(error):
        return Told(Meaning("OUTPUT_INVALID", "got an answer that is not what it expects"), "", raw)
    return Told(meaning_of(error, now), "", raw)


def _failed(call: Call, error: BaseException) -> CallFailure:
    meaning, message, raw = told_of(error, call.ports.clock.wall())
    return _settled(call, meaning, message or f"{call.tool.name} {redacted(meaning.said)}", raw)


def _settled(call: Call, meaning: Meaning, message: str, raw: str) -> CallFailure:
    """An effect that may have happened is never called a failure that can be tried again."""
    in_doubt = not meaning.certain and call.spec.effect in LATE_EFFECTS
    code = meaning.code
    if in_doubt and (code == "TIMEOUT" or call.spec.effect == "irreversible"):
        code = "UNKNOWN_OUTCOME"
        message = f"{message}; it may have taken effect all the same"
    return CallFailure(failure(call, code, message, meaning.delay_s), raw=raw, in_doubt=in_doubt)


def plain_sentence(text: str) -> str:
    """A tool's own message, made fit to be stored and shown: one line, bounded, without what looks like a secret."""
    storable = "".join(c if c.isprintable() else " " for c in redacted(text[:MAX_RAW]))
    shown = " ".join(storable.split()) or "the tool gave no reason"
    return shown if len(shown) <= MAX_MESSAGE else shown[: MAX_MESSAGE - 1] + "…"


def raw_text(error: BaseException) -> str:
    """The exception with its traceback, the end of it where it is long, as text that any store takes. Secrets are
    blanked here too: the text is kept in the database, in buckets and archives, and printed on request."""
    text = redacted("".join(traceback.format_exception(error))[-2 * MAX_RAW :])
    return text[-MAX_RAW:].encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def _single(error: BaseException) -> BaseException:
    """The one exception of a group of one, as a task group around a single failure raises it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_control_flow(error: BaseException) -> bool:
    """Whether this is, or holds, what LangGraph raises to interrupt or to move on; known by its name."""
    if isinstance(error, BaseExceptionGroup):
        return any(_is_control_flow(member) for member in error.exceptions)
    return any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__)


def _is_validation(error: BaseException) -> bool:
    return any(cls.__name__ == "ValidationError" and "pydantic" in cls.__module__ for cls in type(error).__mro__)
