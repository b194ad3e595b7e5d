"""From text to a draft: JSON strictly, YAML for files, and what models write around and into their plans.

Syntax may be repaired, meaning never: nothing is completed, chosen between, renamed or added. Whatever comes in, a
Reading comes out.
"""

from __future__ import annotations

from plans.answer_text import NoPlan, plan_in
from plans.drafting import Form, Reading, drafted, refused
from plans.faults import Fault
from plans.json_text import NotJSON, strict_json
from plans.yaml_text import NotYAML, fenced_blocks, looks_like_yaml, read_yaml

__all__ = ["MAX_TEXT", "Reading", "read_plan"]

MAX_TEXT = 2_000_000
"""Longest text that is read, in characters."""


def read_plan(text: str, finish_reason: str | None = None, *, form: Form | None = None) -> Reading:
    """The draft in a plan file or a model's answer, or what is wrong with it. `finish_reason` is the model's, `form`
    makes a plan's own form of the one that a model was held to."""
    if finish_reason == "length":
        message = "the answer was cut off at the token limit; a plan is never completed"
        return refused(Fault(code="PLAN_TRUNCATED", message=message))
    if finish_reason == "content_filter":
        return refused(Fault(code="PLAN_REFUSED", message="a content filter stopped the answer"))
    if len(text) > MAX_TEXT:
        message = f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are read"
        return refused(Fault(code="PLAN_SYNTAX", message=message))
    if not text.strip():
        return refused(Fault(code="PLAN_SYNTAX", message="the text is empty; expected a plan"))
    try:
        return drafted(strict_json(text), form=form)
    except NotJSON:
        return _as_file(text, form)


def _as_file(text: str, form: Form | None) -> Reading:
    """The plan as YAML, if the text is all YAML; else as what a model wrote."""
    if not looks_like_yaml(text):
        return _as_answer(text, form)
    try:
        value, notes = read_yaml(text)
    except NotYAML as error:
        reading = _as_answer(text, form)
        return reading if reading.draft else refused(Fault(code="PLAN_SYNTAX", message=f"not YAML: {error}"))
    return drafted(value, notes, form=form) if isinstance(value, dict) else _as_answer(text, form)


def _as_answer(text: str, form: Form | None) -> Reading:
    try:
        found = plan_in(text)
    except NoPlan as error:
        return _in_fence(text, form) or refused(Fault(code=error.code, message=str(error)))
    return drafted(found.value, found.notes, repaired=True, form=form)


def _in_fence(text: str, form: Form | None) -> Reading | None:
    """The plan in the only fenced block, if that is YAML."""
    blocks = list(fenced_blocks(text))
    if len(blocks) != 1 or not looks_like_yaml(blocks[0]):
        return None
    try:
        value, notes = read_yaml(blocks[0])
    except NotYAML:
        return None
    return drafted(value, notes, repaired=True, form=form) if isinstance(value, dict) else None
