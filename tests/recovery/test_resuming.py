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


@pytest.mark.slow
def test_questions_whose_answers_died_with_their_process_use_up_the_limit(trials: Trials) -> None:
    """Twice a process is killed with an answer that nobody will know: both bills stay paid. A third question that does
    not fit beside them is not put by a third process, nor by a fourth; under a higher limit the run ends as ever."""
    trial = trials.trial()
    first = trial.start("first", at="model.answered", limits={"max_tokens": 5_000})
    assert first.ends() == -signal.SIGKILL
    [bill] = [row["body"] for row in trial.moment().rows if row["kind"] == "reservation"]
    tokens = bill["prompt_tokens"] + bill["completion_tokens"]
    limits = {"max_tokens": round(2.5 * tokens)}
    assert trial.start("second", at="model.answered", limits=limits).ends() == -signal.SIGKILL
    assert trial.start("third", limits=limits).ended()["status"] == "limited"
    assert trial.start("fourth").ended()["status"] == "limited"
    assert sum(call["tool"] == "model" for call in trial.moment().calls) == 2
    assert trial.start("fifth", limits={"max_tokens": 9 * tokens}).ended()["status"] == "done"
    assert resumes(trial.moment())[-1][:2] == ("decision", "goes_on")
