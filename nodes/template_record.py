"""What the end of a run says of the template that its plan was made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from checkpoints.runs import OPEN
from checkpoints.template_uses import TemplateServed
from plans.failure import CODES, Failure

if TYPE_CHECKING:
    from nodes.fold import RunFold

NOT_THE_TEMPLATE = frozenset(
    {"NOT_FOUND", "NOT_PERMITTED", "INVALID_INPUT", "RESOURCE_LIMIT", "MODEL_ANSWER_INVALID", "MODEL_REFUSED",
     "MODEL_NOT_CONFIGURED", "INPUT_CHANGED", "NEW_INSTRUCTION", "ANSWERED"}
)  # fmt: skip
"""Hard and semantic failures that come from the goal, its inputs, its user, the machine or a model."""


def served(fold: RunFold, finished: Mapping[str, Any]) -> TemplateServed | None:
    """What the end of a run says of its template; None where the run may go on, or its plan was made of none.

    The template has failed if what its plan did failed by itself, whether that ended the run or was mended by planning
    anew; it has served if the run is done and nobody had to change the plan. An outage, a limit, a rejection, a
    cancellation and an edit say nothing.
    """
    made_from = fold.made_from
    if finished["status"] in OPEN or made_from is None:
        return None
    done = finished["status"] == "done"
    codes = [*fold.planned_anew, *([] if done else _codes(finished))]
    blamed = [code for code in codes if _blames(code)] if finished["status"] != "cancelled" else []
    clean = done and not codes and not is_edited(fold) and not fold.rejected
    succeeded = False if blamed else True if clean else None
    return TemplateServed(made_from.name, made_from.sha256, succeeded, blamed[0] if blamed else None)


def is_edited(fold: RunFold) -> bool:
    """Whether a person has changed the plan."""
    return any(draft["source"] == "human" and draft["valid"] for draft in fold.drafts.values())


def _codes(finished: Mapping[str, Any]) -> list[str]:
    failures = [Failure.model_validate(each) for each in finished["failures"]]
    return [failure.cause or failure.code for failure in failures]


def _blames(code: str) -> bool:
    return CODES[code].class_ in ("hard", "semantic") and code not in NOT_THE_TEMPLATE
