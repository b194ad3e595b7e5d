"""A plan that a person looks at before anything of it runs: when that is wanted, what is shown, and what waits for it.

That a revision is to be looked at stands in its own row (`plan`), so that nothing starts between the two; the question
itself is asked by `dispatch`, anew after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.asking import record_request
from plans.decisions import ABOUT_PLAN
from plans.plan import Source
from plans.values import JSON
from plans.wording import counted

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from nodes.session import Session

MOST_CHANGES = 12
"""Changes of a revision that are told in the question itself; more are counted."""


def is_looked_at(fold: RunFold, source: Source) -> bool:
    """Whether a person is to look at a new revision by this author. What a person has written needs no other's look."""
    review = fold.head.review if fold.head else "none"
    if review == "none" or source == "human":
        return False
    return review == "every" or not fold.reviewed


def looked_at(parent: RunFold) -> dict[str, bool]:
    """What the first plan of a fork says of this: nobody comes round a review by forking."""
    if parent.in_review is not None:
        return {"review": True}
    return {"reviewed": True} if parent.reviewed else {}


def waits(session: Session) -> bool:
    """Whether a revision waits to be looked at: nothing starts meanwhile, and what has begun goes on."""
    return session.fold.in_review is not None


async def ask_review(session: Session) -> None:
    """Show the current revision to a person, unless that was done already."""
    asked = any(request.kind == "review" for request in session.fold.asked.values())
    if waits(session) and not asked and not session.fold.is_edited:
        await record_request(session, ABOUT_PLAN, "review", "plan", _shown(session), "low", _reason(session))


def _shown(session: Session) -> dict[str, JSON]:
    """The plan as a person may edit it, and give it back."""
    shown: dict[str, Any] = session.plan.draft.model_dump(mode="json", exclude_defaults=True)
    return shown


def _reason(session: Session) -> str:
    """Why it is shown; of a later revision why it was written, and what it changes."""
    if changed := changes_told(session.fold):
        return f"a person looks at the plan before it goes on; {changed}"
    return f"a person looks at the plan before it runs ({counted(len(session.plan.steps), 'step')})"


def changes_told(fold: RunFold) -> str | None:
    """What the current revision has changed, a line for each change, and why; None of a first one."""
    if fold.plan is None or not fold.revisions or fold.revisions[-1].revision != fold.plan.revision:
        return None
    last = fold.revisions[-1]
    lines = [change.line for change in last.changes[:MOST_CHANGES]]
    if len(last.changes) > MOST_CHANGES:
        lines.append(f"and {counted(len(last.changes) - MOST_CHANGES, 'more change')}")
    why = f", because {' '.join(last.why.split())}" if last.why else ""
    return "\n".join((f"revision {last.revision} of the plan ({last.source.replace('_', ' ')}){why}:", *lines))
