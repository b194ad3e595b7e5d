"""From text to a draft: JSON strictly, YAML for files, and what models write around and into their plans.

Syntax may be repaired, meaning never: nothing is completed, chosen between, renamed or added. Whatever comes in, a
Reading comes out.
"""

from __future__ import annotations

from dataclasses import replace

from plans.answer_text import NoPlan, plan_in
from plans.drafting import Form, Reading, drafted, refused
from plans.endings import CUT, FAILED, FILTERED, REFUSED, ending
from plans.faults import Fault
from plans.json_text import NotJSON, strict_json
from plans.yaml_text import NotYAML, begins_as_yaml, fenced_blocks, looks_like_yaml, read_yaml

__all__ = ["MAX_TEXT", "Reading", "read_plan"]

MAX_TEXT = 2_000_000
"""Longest text that is read, in characters."""


def read_plan(text: str, finish_reason: str | None = None, *, form: Form | None = None) -> Reading:
    """The draft in a plan file or a model's answer, or what is wrong with it. `finish_reason` is the model's, in any
    provider's words; None says that this is a whole file. `form` makes a plan's own form of the one that a model was
    held to."""
    if problem := _ending(finish_reason):
        return refused(problem)
    if len(text) > MAX_TEXT:
        message = f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are read"
        return refused(Fault(code="PLAN_SYNTAX", message=message))
    return _read(text, form, is_file=finish_reason is None)


def _ending(finish_reason: str | None) -> Fault | None:
    """Why an answer is none, whatever its text looks like."""
    reason = ending(finish_reason)
    if reason == CUT:
        message = "the answer was cut off at the token limit; a plan is never completed"
        return Fault(code="PLAN_TRUNCATED", message=message)
    if reason == FAILED:
        return Fault(code="PLAN_TRUNCATED", message="the answer was not finished; a plan is never completed")
    if reason == FILTERED:
        return Fault(code="PLAN_REFUSED", message="a content filter stopped the answer")
    if reason == REFUSED:
        return Fault(code="PLAN_REFUSED", message="the model declined")
    return None


def _read(text: str, form: Form | None, *, is_file: bool, quoted: bool = False) -> Reading:
    if not text.strip():
        message = "the text is empty; expected a plan"
        return refused(Fault(code="PLAN_SYNTAX", message=message), Fault(code="PLAN_EMPTY", message="there is no step"))
    try:
        value = strict_json(text)
    except NotJSON:
        if not looks_like_yaml(text):
            return _as_answer(text, form)
        return _as_yaml(text, form) if is_file else _in_yaml_or_not(text, form)
    if isinstance(value, str) and "{" in value and not quoted:
        return replace(_read(value, form, is_file=False, quoted=True), repaired=True)
    return drafted(value, form=form)


def _in_yaml_or_not(text: str, form: Form | None) -> Reading:
    """The plan in an answer that may be YAML. That has no end of its own, and could have been cut off anywhere."""
    reading = _as_answer(text, form)
    if reading.draft is not None or not begins_as_yaml(text):
        return reading
    message = "an answer in YAML may have been cut off anywhere; write JSON, or put the YAML between fences"
    return refused(Fault(code="PLAN_SYNTAX", message=message))


def _as_yaml(text: str, form: Form | None) -> Reading:
    """The plan as YAML, if the text is all YAML; else as what a model wrote."""
    try:
        value, notes = read_yaml(text)
    except NotYAML as error:
        reading = _as_answer(text, form)
        return reading if reading.draft else refused(Fault(code="PLAN_SYNTAX", message=f"not YAML: {error}"))
    return drafted(value, notes, form=form) if isinstance(value, dict) else _as_answer(text, form)


def _as_answer(text: str, form: Form | None) -> Reading:
    block = _yaml_in_fence(text)
    try:
        found = plan_in(text)
    except NoPlan as error:
        reading = _of_yaml(block, form) if block is not None else None
        return reading or refused(Fault(code=error.code, message=str(error)))
    if block is not None:
        message = "the text holds a plan in YAML and something else in braces; expected one plan"
        return refused(Fault(code="PLAN_AMBIGUOUS", message=message))
    return drafted(found.value, found.notes, repaired=True, form=form)


def _yaml_in_fence(text: str) -> str | None:
    """What stands in the only fenced block of an answer and looks like a plan in YAML. Its fence shows that it is
    whole."""
    spoken = text.rpartition("</think>")[2]
    blocks = list(fenced_blocks(spoken))
    whole = len(blocks) == 1 and spoken.count("```") == 2 and looks_like_yaml(blocks[0])
    return blocks[0] if whole else None


def _of_yaml(text: str, form: Form | None) -> Reading | None:
    try:
        value, notes = read_yaml(text)
    except NotYAML:
        return None
    return drafted(value, notes, repaired=True, form=form) if isinstance(value, dict) else None
