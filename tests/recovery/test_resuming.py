"""Why a run was gone on with, as its journal says after real kills, interrupts, decisions and pauses."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.recovery.trial import Moment, Trials


def resumes(moment: Moment) -> list[tuple[Any, ...]]:
    """What the journal says of each resumption."""
    bodies = [row["body"] for row in moment.rows if row["kind"] == "resumed"]
    return [(body["trigger"], body["result"], body["about"]) for body in bodies]


@pytest.mark.parametrize(
    ("at", "nth", "action", "noted"),
    [
        ("effect.returned", 1, "kill", ("crash", "settles", {"charge[0]", "charge[1]"})),
        ("plan.queued", 1, "kill", ("crash", "goes_on", set())),
        ("effect.intended", 4, "interrupt", ("stop", "goes_on", set())),
    ],
)
def test_a_resume_says_what_it_resumed_after_and_what_it_found(
    trials: Trials, at: str, nth: int, action: Any, noted: tuple[str, str, set[str]]
) -> None:
    """A killed process is told from one that was stopped in order; what was in doubt is named. The decision about the
    letter that the run then waits for is a resumption of its own."""
    trial = trials.trial()
    assert trial.start("first", at=at, nth=nth, action=action).ends() in (-signal.SIGKILL, 1, 130)
    assert trial.start("second").ended()["status"] == "done"
    first, *others = resumes(trial.moment())
    assert first[:2] == noted[:2]
    assert set(first[2]) <= noted[2]
    assert bool(first[2]) == bool(noted[2])
    assert [each[0] for each in others] == ["decision"]
