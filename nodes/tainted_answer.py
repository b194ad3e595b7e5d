"""Which parts of a run's answer rest on text that is not trusted: said beside the answer, line by line. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodes.taint import ANSWER, reference_taint
from plans.provenance import REPLAN
from plans.references import lines_of, references_in

if TYPE_CHECKING:
    from nodes.fold import RunFold


@dataclass(frozen=True, slots=True)
class TaintedPart:
    """A line of the answer as the plan has it, and the step runs, inputs and, as "replan", the change of the plan
    through which a stranger may have had a say in it."""

    line: str
    tainted_by: tuple[str, ...]


def tainted_parts(fold: RunFold) -> tuple[TaintedPart, ...]:
    """The lines of a finished run's answer that are tainted; of a plan without an answer the results that stand in its
    place."""
    if fold.plan is None or fold.finished is None or fold.finished["status"] != "done":
        return ()
    written = (REPLAN,) if ANSWER in fold.swayed else ()
    parts = []
    for line in _lines(fold):
        roots = dict.fromkeys(written if fold.plan.answer is not None else ())
        for reference in references_in(line):
            roots |= dict.fromkeys(reference_taint(fold, reference))
        if roots and line.strip():
            parts.append(TaintedPart(line, tuple(roots)))
    return tuple(parts)


def _lines(fold: RunFold) -> list[str]:
    """The lines of the plan's answer, else references to what nothing depends on."""
    if fold.plan is None:
        return []
    if fold.plan.answer is not None:
        return lines_of(fold.plan.answer)
    read = {name for step in fold.plan.steps for name in step.depends_on}
    return ["${" + step.id + "}" for step in fold.plan.steps if step.id not in read]
