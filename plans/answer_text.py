"""The one plan in a model's answer, whatever stands around it: prose, fences, thoughts. Two plans are none.

A plan is found by its brackets, outside of everything else. If some other part of the text could be a plan or a step
as well, or a plan breaks off or makes no sense, nothing is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from plans.faults import FaultCode
from plans.json_text import Note
from plans.loose_json import Broken, Cut, LooseParser
from plans.values import JSON

_THOUGHTS = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think"
_START = re.compile(
    rf"\{{|(?<!CDATA)\[(?=\s*\{{)|[<◁\[](?P<end>/?)(?P<tag>{_THOUGHTS})[>▷\]]|(?P<final><\|channel\|>final\b[^<]*<\|message\|>)",
    re.IGNORECASE,
)
_PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
LONGEST_KEY = 120
"""How far before a value its key is looked for, in characters."""
MAX_PIECES = 10_000
"""Things in braces that are looked at before a text is given up; a model's longest thoughts have some hundreds."""

_KEY_BEFORE = re.compile(r"""(?:\A|[\n{,｛，])\s*["'“”„＂][^"'“”„＂\n]{1,80}["'“”„＂]\s*(?:[:：]|=>?)\s*\Z""")
_PLAN = frozenset({"goal", "steps"})
_STEP = frozenset({"id", "action", "tool", "args", "instruction", "depends_on"})


@dataclass(frozen=True, slots=True)
class Found:
    """A value that stands complete in the text, from `at` on."""

    at: int
    value: JSON
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Fragment:
    """What begins like a value and is none: `message` is None where it is only cut off."""

    at: int
    keys: frozenset[str]
    message: str | None

    @property
    def of_plan(self) -> bool:
        """Whether it may have been meant as a plan or a step."""
        return bool(self.keys & _PLAN) or len(self.keys & _STEP) > 1


class NoPlan(Exception):
    """The text holds no plan that could be taken without guessing."""

    def __init__(self, code: FaultCode, message: str) -> None:
        super().__init__(message)
        self.code: FaultCode = code


def plan_in(text: str) -> Found:
    """The value that is the plan. Raises NoPlan."""
    found: list[Found] = []
    fragments: list[Fragment] = []
    for count, piece in enumerate(_pieces(text)):
        if count > MAX_PIECES:
            raise NoPlan("PLAN_SYNTAX", f"the text holds more than {MAX_PIECES:,} things in braces; expected one plan")
        if piece is None:
            found, fragments = [], []
        elif isinstance(piece, Found):
            found.append(piece)
        else:
            fragments.append(piece)
    return _chosen(text, found, fragments)


def _pieces(text: str) -> Iterator[Found | Fragment | None]:
    """Everything in the text that is or begins like a value; None where thoughts end and the answer begins."""
    at = 0
    while start := _START.search(text, at):
        if start["tag"] or start["final"]:
            at = start.end()
            if start["end"] or start["final"]:
                yield None
            elif closing := re.compile(rf"[<◁\[]/{start['tag']}[>▷\]]", re.IGNORECASE).search(text, at):
                at = closing.end()
            else:
                yield Fragment(start.start(), frozenset(), None)
                return
            continue
        parser = LooseParser(text, start.start())
        try:
            value = parser.read()
            yield Found(start.start(), value, tuple(parser.notes))
            at = parser.at
        except Cut as cut:
            yield Fragment(start.start(), frozenset(parser.keys), None)
            at = cut.at
        except Broken as error:
            yield Fragment(error.at, frozenset(parser.keys), str(error))
            at = max(error.at, start.start() + 1)


def _chosen(text: str, found: list[Found], fragments: list[Fragment]) -> Found:
    plans = [each for each in found if _is_like(each.value, _PLAN, 1)]
    first = min((each.at for each in plans or found), default=-1)
    for fragment in fragments:
        # What stands behind an object that broke may stand inside of it, or of one of its strings.
        if fragment.of_plan or (fragment.keys and fragment.at <= first):
            raise _unfinished(text, fragment)
    if len(plans) > 1:
        raise NoPlan(
            "PLAN_AMBIGUOUS", f"the text holds {len(plans)} plans; expected one, and nothing is chosen for you"
        )
    if plans:
        if any(_is_like(each.value, _STEP, 2) for each in found if each is not plans[0]):
            raise NoPlan("PLAN_AMBIGUOUS", "outside of the plan the text holds something that looks like a step of it")
        return _not_inside(text, plans[0], fragments)
    return _only(text, found, fragments)


def _only(text: str, found: list[Found], fragments: list[Fragment]) -> Found:
    """Where nothing looks like a plan: the only value there is, whose faults are then named."""
    if _PAGE.match(text):
        raise NoPlan("PLAN_SYNTAX", "the text is a page in HTML, as servers send for errors; expected a plan")
    if fragments and (len(found) != 1 or fragments[0].message is None):
        raise _unfinished(text, fragments[0])
    if len(found) == 1:
        return _not_inside(text, found[0], fragments)
    if found:
        raise NoPlan("PLAN_SYNTAX", f"none of the {len(found)} JSON values in the text is a plan")
    begins = " ".join(text[:200].split())[:60]
    raise NoPlan("PLAN_SYNTAX", f"expected one JSON object; the text has none and begins {begins!r}")


def _not_inside(text: str, found: Found, fragments: list[Fragment]) -> Found:
    """The value, with a note if it is that of a key: then what could be read is a part of what was written."""
    if not _KEY_BEFORE.search(text[max(0, found.at - LONGEST_KEY) : found.at]):
        return found
    broken = next((each for each in fragments if each.at <= found.at and each.message is not None), None)
    message = "this is the value of a key, and the object around it cannot be read"
    said = _placed(text, broken or Fragment(found.at, frozenset(), message))
    return replace(found, notes=(Note("PLAN_SYNTAX", (), said), *found.notes))


def _unfinished(text: str, fragment: Fragment) -> NoPlan:
    if fragment.message is None:
        return NoPlan("PLAN_TRUNCATED", "the text ends in the middle of the plan; a plan is never completed")
    return NoPlan("PLAN_SYNTAX", _placed(text, fragment))


def _placed(text: str, fragment: Fragment) -> str:
    line = text.count("\n", 0, fragment.at) + 1
    column = fragment.at - text.rfind("\n", 0, fragment.at)
    return f"line {line}, column {column}: {fragment.message}"


def _is_like(value: JSON, keys: frozenset[str], least: int) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, dict) and _is_like(item, keys, least) for item in value)
    return isinstance(value, dict) and len(keys & value.keys()) >= least
