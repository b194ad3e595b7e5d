"""What a caller gives besides goal and inputs, checked and told in words: ids and limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import InvalidInput
from plans.limits import Limits
from plans.values import printable
from plans.wording import nearest

if TYPE_CHECKING:
    from nodes.state import Review

LONGEST_ID = 200
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST_AGE_S = 1e9


def check_id(given: str, what: str) -> str:
    """An id that can be stored, shown in one line and typed as an argument. Raises InvalidInput.

    `what` begins the sentence: "the thread id".
    """
    if not given.strip():
        raise InvalidInput(f"{what} is empty; leave it out, or give some letters or digits")
    if len(given) > LONGEST_ID:
        raise InvalidInput(f"{what} has {len(given):,} characters; at most {LONGEST_ID} are taken")
    if not given.isprintable() or given != given.strip() or given.startswith("-"):
        raise InvalidInput(
            f"{what} {printable(given)!r} cannot be used: printable characters only, no space at its ends, and no - "
            "at its beginning"
        )
    return given


def age_s(given: str | float | timedelta) -> float:
    """An age in seconds: a number of seconds, a length of time, or a text with its unit: 90s, 15m, 12h, 7d, 2w. Raises
    InvalidInput.

    A text without a unit is refused: who means days by "7" must not lose them to seconds.
    """
    if isinstance(given, timedelta):
        given = given.total_seconds()
    text = f"{given}s" if isinstance(given, int | float) else given
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    seconds = float(found[1]) * SECONDS[found[2]] if found else math.inf
    if seconds > LONGEST_AGE_S:
        raise InvalidInput(
            f"the age {printable(str(given))!r} cannot be used: a number and a unit, such as 90s, 12h, 7d or 2w"
        )
    return seconds


def limits_from(given: Mapping[str, Any] | None) -> Limits:
    """The limits of a run. Raises InvalidInput that names each wrong one, what it is and what it should be."""
    try:
        return Limits.model_validate(dict(given or {}))
    except ValidationError as error:
        wrong = "; ".join(_wrong(item) for item in error.errors(include_url=False))
        raise InvalidInput(f"limits that cannot be used: {wrong}") from None


def review_from(review: Review, approve: str) -> Review:
    """Which plans a person looks at in a run that asks people so. Raises InvalidInput where it asks none."""
    if review != "none" and approve == "none":
        raise InvalidInput("a review of the plan asks a person, and --approve none asks nobody; choose one")
    return review


def _wrong(item: Any) -> str:
    if not item["loc"]:
        return "a name is no text that can be stored"
    name = str(item["loc"][0])
    if item["type"] != "extra_forbidden":
        return f"{name} is {item['input']!r}: {item['msg'][:1].lower()}{item['msg'][1:]}"
    close = nearest(name, Limits.model_fields)
    meant = f"did you mean {close}?" if close else f"there are {', '.join(Limits.model_fields)}"
    return f"there is no limit {printable(name)!r}; {meant}"
