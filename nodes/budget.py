"""What a planning prompt leaves out to keep within its budget: a fixed order, and the prompt says what is missing.

Examples go first, then the summaries of older steps, then what is told of each tool: its result's type in the place of
the schema, its arguments' type, in the end its result altogether. The goal, the inputs, the names of the tools and what
they take, the failure and the faults always stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from nodes.model_settings import estimated
from nodes.prompts import Rendered

HISTORY = 20
"""Finished steps that are shown with a summary of their result; of older ones only ids and tools are."""
SHORT_HISTORY = 5


class Detail(IntEnum):
    """How much is told of each tool, most first."""

    SCHEMAS = 0
    RESULT_TYPES = 1
    TYPES = 2
    ARGUMENT_TYPES = 3


@dataclass(frozen=True, slots=True)
class Cut:
    """How a prompt is written."""

    examples: bool = True
    history: int = HISTORY
    detail: Detail = Detail.SCHEMAS


CUTS: Sequence[Cut] = (
    Cut(),
    Cut(examples=False),
    Cut(examples=False, history=SHORT_HISTORY),
    Cut(examples=False, history=SHORT_HISTORY, detail=Detail.RESULT_TYPES),
    Cut(examples=False, history=SHORT_HISTORY, detail=Detail.TYPES),
    Cut(examples=False, history=0, detail=Detail.ARGUMENT_TYPES),
)


def fitted(write: Callable[[Cut], Rendered], budget: int) -> Iterator[Rendered]:
    """The prompt with as much in it as the budget allows, in estimated tokens; the shortest there is where none fits.
    Behind it, for an endpoint that finds it too long, one without examples, and the shortest."""
    first = next((cut for cut in CUTS if tokens_of(write(cut)) <= budget), CUTS[-1])
    for cut in dict.fromkeys((first, max(first, CUTS[1], key=CUTS.index), CUTS[-1])):
        yield write(cut)


def tokens_of(prompt: Rendered) -> int:
    """About how many tokens a prompt is, without the schema that its answer is held to."""
    return estimated(prompt.rules + prompt.task)
