"""A process is killed at every commit point of the engine; another goes on, and the ledger is counted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from checkpoints.crash_points import POINTS
from tests.recovery.kit import WIRE
from tests.recovery.trial import Trials

RENEWED = {"lease_s": 3.0, "slow_s": 1.5}
"""A lease that is renewed within the run."""
LATER = {
    "journal.before_batch": (8, 20), "journal.batch_committed": (8, 20), "effect.intended": (2, 3, 4, 5),
    "effect.returned": (2, 3, 4, 5), "node.flushed": (6,), "checkpoint.stored": (2,), "lease.released": (2,),
    "lease.acquired": (2,), "plan.queued": (2, 3), "run.status_set": (3,), "model.answered": (2, 3, 4),
}  # fmt: skip
"""Comings to a point, besides the first, that are another moment of the run."""
WITHDRAWAL = ("approval.before_withdrawal", "approval.withdrawn")
"""Points that a run comes to when it ends, or changes, while somebody is asked."""
MOMENTS = [(point, nth) for point in POINTS if point not in WITHDRAWAL for nth in (1, *LATER.get(point, ()))]


def killed(trials: Trials, point: str, nth: int) -> list[str]:
    """What is wrong after a run was killed there and another process has gone on."""
    trial = trials.trial()
    child = trial.start("first", at=point, nth=nth, **(RENEWED if point == "lease.renewed" else {}))
    if child.ends() != -signal.SIGKILL:
        return [f"it ended with {child.code} and did not die: {child.log()}"]
    return trial.violations(trial.moment(), trial.start("second").ended())


@pytest.fixture(scope="module")
def outcomes(trials: Trials) -> Iterator[dict[tuple[str, int], Future[list[str]]]]:
    """All trials of this module, three at a time."""
    with ThreadPoolExecutor(3) as pool:
        yield {moment: pool.submit(killed, trials, *moment) for moment in MOMENTS}


def test_without_a_kill_every_point_is_reached_and_every_effect_happens_once(trials: Trials) -> None:
    """The plan leads to every commit point but those of a withdrawal, so that each trial below means something; and
    it is sound."""
    trial = trials.trial()
    before = trial.moment()
    ended = trial.start("only", **RENEWED).ended()
    assert set(ended["reached"]) - {WIRE} == set(POINTS) - set(WITHDRAWAL)
    assert trial.violations(before, ended) == []


@pytest.mark.parametrize(("point", "nth"), MOMENTS)
def test_killed_at_a_commit_point_nothing_finished_is_repeated_or_lost(
    outcomes: dict[tuple[str, int], Future[list[str]]], point: str, nth: int
) -> None:
    """Finished effects happen once, finished results stay, what is in doubt is probed or asked about, and the answer
    is the one of a run that nobody killed."""
    assert outcomes[point, nth].result() == []


@pytest.mark.parametrize("point", WITHDRAWAL)
def test_killed_while_the_questions_of_a_cancelled_run_are_withdrawn_nobody_is_asked_any_more(
    trials: Trials, point: str
) -> None:
    """Cancelled again, the run is cancelled, its effects have happened once, and no question waits."""
    trial = trials.trial()
    assert trial.start("first", answers=False).ended()["waiting"] == 1
    assert trial.start("second", cancel=True, at=point).ends() == -signal.SIGKILL
    before = trial.moment()
    ended = trial.start("third", cancel=True).ended()
    assert (ended["status"], ended["state"], ended["waiting"]) == ("cancelled", "cancelled", 0)
    assert trial.moment().calls == before.calls
