"""Whether a candidate says the same as the tool it shadows, and where it does not: places, never what stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from plans.expressions import search
from plans.values import JSON, Path, canonical, dotted
from plans.wording import kind_of
from tools.outcome import CallFailure, Outcome

ANSWERS = frozenset({"NOT_FOUND", "INVALID_ARGS", "INVALID_INPUT", "RULE_VIOLATED", "NOT_PERMITTED", "OUTPUT_EMPTY"})
"""Codes of failures that are a tool's answer: it would be the same again, and a candidate has to give it too."""
MOST_PLACES = 5

_NAME = re.compile(r"[A-Za-z_]\w{0,39}")


def says(outcome: Outcome, compare: str | None) -> JSON | None:
    """What an outcome says, as far as it is compared: part of a result, or the code of an answer; None where it says
    nothing that could be. Raises InvalidExpression for a comparison that cannot be evaluated on this result."""
    if isinstance(outcome, CallFailure):
        return {"failure": outcome.failure.code} if outcome.failure.code in ANSWERS else None
    if compare is None:
        return {"result": outcome.value}
    found = search(compare, outcome.value)
    return None if found is None else {"result": found}


def same(ours: JSON, theirs: JSON) -> bool:
    """Whether two values are the same JSON: 1, 1.0, true and "1" are four values, the order of keys is none."""
    return canonical(ours) == canonical(theirs)


def places(ours: JSON, theirs: JSON) -> list[str]:
    """The first places at which two values differ, and how, such as `result.items[3].total: a number, text there`."""
    return list(islice(_places(ours, theirs, ()), MOST_PLACES))


def _places(ours: JSON, theirs: JSON, path: Path) -> Iterator[str]:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        yield from _in_object(ours, theirs, path)
    elif isinstance(ours, list) and isinstance(theirs, list):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _places(one, other, (*path, index))
        if len(ours) != len(theirs):
            yield f"{dotted(path)}: {len(theirs)} elements instead of {len(ours)}"
    elif not same(ours, theirs):
        one, other = kind_of(ours), kind_of(theirs)
        yield f"{dotted(path)}: {'another value' if one == other else f'{other} instead of {one}'}"


def _in_object(ours: Mapping[str, JSON], theirs: Mapping[str, JSON], path: Path) -> Iterator[str]:
    for key in sorted({*ours, *theirs}):
        here = (*path, key if _NAME.fullmatch(key) else "*")
        if key not in theirs:
            yield f"{dotted(here)}: missing"
        elif key not in ours:
            yield f"{dotted(here)}: new"
        else:
            yield from _places(ours[key], theirs[key], here)
