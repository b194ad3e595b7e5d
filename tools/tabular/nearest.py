"""What to say about a name that is not there: the nearest one that is, and all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from plans.failure import ToolFailure

_MOST_LISTED = 40


def unknown(kind: str, name: str, known: Sequence[str], where: str) -> str:
    """The sentence: which name, the nearest, the known ones."""
    folded = {candidate.casefold(): candidate for candidate in known}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)]
    meant = f"; did you mean {near[0]!r}?" if near else "."
    listed = ", ".join(map(repr, known[:_MOST_LISTED])) + (", …" if len(known) > _MOST_LISTED else "")
    return f"{where} has no {kind} {name!r}{meant} It has: {listed}"


def require(names: Iterable[str], known: Sequence[str], where: str) -> None:
    """ToolFailure INVALID_ARGS for columns that are not there, all of them at once."""
    if lacking := [name for name in dict.fromkeys(names) if name not in known]:
        first = unknown("column", lacking[0], known, where)
        others = f" (and none of {', '.join(map(repr, lacking[1:]))})" if lacking[1:] else ""
        raise ToolFailure("INVALID_ARGS", first + others)
