"""How a person reads what has become of a run's plan: each revision, why, and what it has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from plans.wording import counted

if TYPE_CHECKING:
    from graph.revisions import Revision

MOST_CHANGES = 20
"""Changes of one revision that are shown; all of them stand in `--json`."""


def revised(revisions: Sequence[Revision]) -> Iterator[str]:
    """The lines about each revision, in their order."""
    for each in revisions:
        why = f": {' '.join(each.why.split())}" if each.why else ""
        yield f"plan, revision {each.revision} ({each.source.replace('_', ' ')}){why}"
        if not each.changes:
            yield "  nothing is another way"
        for change in each.changes[:MOST_CHANGES]:
            yield f"  {change.line}"
        if (more := len(each.changes) - MOST_CHANGES) > 0:
            yield f"  and {counted(more, 'more change')}"
