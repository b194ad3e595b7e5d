"""Values that somebody decides about, shown so that none of them can pass for anything beside it.

They come from models, files and tools: their further lines have a bar before them, a long gap is told instead of made
(a terminal would begin a line of its own after it), and no value pushes the rest off the screen.
"""

from __future__ import annotations

import json
import re

from plans.decisions import ApprovalRequest
from plans.provenance import PLAN, Provenance
from plans.values import printable

LONGEST_VALUE = 4_000
"""Characters of one argument that are shown; a longer one is cut, and its length and where all of it is are said."""
MOST_LINES = 40
"""Lines of one argument that are shown."""
LONGEST_NAME = 60
LONGEST_REASON = 1_000
MOST_ORIGINS = 8
"""Sources of one argument that are shown, those that are not trusted before the others."""
_GAP = re.compile(r"\t{2,}|[^\S\n]{9,}")
_BREAK = re.compile("\r\n|[\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")
_ALL = "all of it: surestep approvals --json"


def name_shown(name: str) -> str:
    """An argument's name, on one line."""
    return printable(name, LONGEST_NAME)


def reason_shown(reason: str) -> str:
    """Why it is asked, on one line."""
    return printable(" ".join(reason.split()), LONGEST_REASON)


def value_shown(value: object) -> str:
    """A value; each of its lines but the first begins with a bar."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text, length, lines = text[: LONGEST_VALUE + 1], len(text), _BREAK.split(text)
    shown, more = _BREAK.split(text[:LONGEST_VALUE])[:MOST_LINES], ""
    if length > LONGEST_VALUE:
        more = f" … ({length:,} characters; {_ALL})"
    if len(lines) > MOST_LINES:
        more = f" … ({len(lines):,} lines, {length:,} characters; {_ALL})"
    return "\n| ".join(_GAP.sub(lambda gap: f" [{len(gap[0])} blanks] ", line) for line in shown) + more


def origins_shown(request: ApprovalRequest, argument: str) -> str:
    """Where an argument's values come from, a line for each; nothing of what stands in the plan itself."""
    place = printable(argument)
    own = [each for each in request.sources if re.fullmatch(rf"{re.escape(place)}([.\[].*)?", each.argument, re.DOTALL)]
    own.sort(key=lambda each: each.trusted)
    told = dict.fromkeys(_origin(each) for each in own if each.source != PLAN or not each.trusted)
    more = [f"← and {len(told) - MOST_ORIGINS} more"] if len(told) > MOST_ORIGINS else []
    return "".join(f"\n{line}" for line in [*list(told)[:MOST_ORIGINS], *more])


def _origin(source: Provenance) -> str:
    by = f" of {source.tool}" if source.tool else ""
    return f"← {printable(source.source)}{by}{'' if source.trusted else ', not trusted'}"
