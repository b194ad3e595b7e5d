"""Rows that say why a run was gone on with, what was found then, and how that ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodes.fold import RunFold


@dataclass(frozen=True, slots=True)
class Resumption:
    """One time that a run was gone on with. `trigger` is why: a crash, a stop (its drive was ended in order), a limit,
    a decision, an expiry, an instruction, a cancel, or nothing of these (`asked_for`). `result` is what it led to at
    once: the run goes_on, settles what is in doubt (`about` names the step runs), plans_anew because inputs have
    changed (`about` names them), or ends. `at` is wall time in seconds, `ended` how this stretch ended, if it has.
    """

    trigger: str
    result: str
    about: tuple[str, ...] = ()
    at: float | None = None
    ended: str | None = None


def resumed(self: RunFold, _: str, __: int, body: Mapping[str, Any]) -> None:
    """Somebody goes on with the run."""
    self.resumes.append(Resumption(body["trigger"], body["result"], tuple(body["about"]), body["at"]))


def stretch_ended(self: RunFold, how: str) -> None:
    """The run stands still again."""
    if self.resumes and self.resumes[-1].ended is None:
        self.resumes[-1] = replace(self.resumes[-1], ended=how)
