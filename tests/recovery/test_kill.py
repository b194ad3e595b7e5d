"""What each kind of effect comes to when its process dies, is stopped, or is told to end."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.recovery.trial import Moment, Trials

CHARGED, SHIPPED, SENT = 1, 4, 5
"""At which coming to the points of effects: the first charge, the parcel, the letter."""


def arrivals(moment: Moment, tool: str) -> list[dict[str, Any]]:
    """The calls of a tool that reached the ledger."""
    return [call for call in moment.calls if call["tool"] == tool]


@pytest.mark.parametrize(("nth", "unit"), [(SHIPPED, "ship"), (SENT, "send")])
def test_an_intent_is_in_the_journal_before_its_call_is_made(trials: Trials, nth: int, unit: str) -> None:
    """Killed just before the call, the journal knows that it may have happened, and the ledger that it has not."""
    trial = trials.trial()
    assert trial.start("first", at="effect.intended", nth=nth).ends() == -signal.SIGKILL
    before = trial.moment()
    assert before.in_doubt() == {unit}
    assert arrivals(before, unit) == []


def test_an_idempotent_effect_is_sent_again_with_the_same_key(trials: Trials) -> None:
    """Killed after a charge that nobody knows of, it is sent again, and the other side sees one key."""
    trial = trials.trial()
    assert trial.start("first", at="effect.returned", nth=CHARGED).ends() == -signal.SIGKILL
    before = trial.moment()
    assert trial.violations(before, trial.start("second").ended()) == []
    charges = arrivals(trial.moment(), "charge")
    assert len(charges) > len({call["key"] for call in charges}) == 2


def test_an_irreversible_effect_whose_probe_knows_is_not_repeated(trials: Trials) -> None:
    """Killed after a shipment, the probe says that it has left: it is taken as done, and nobody is asked."""
    trial = trials.trial()
    assert trial.start("first", at="effect.returned", nth=SHIPPED).ends() == -signal.SIGKILL
    ended = trial.start("second", answers=False).ended()
    assert [request["tool"] for request in ended["approvals"]] == ["send"]
    assert len(arrivals(trial.moment(), "ship")) == 1


@pytest.mark.parametrize(
    ("answer", "sent"),
    [({"type": "approve"}, 2), ({"type": "respond", "message": '{"receipt": "yes"}'}, 1), ({"type": "reject"}, 1)],
    ids=["it has not happened: run it", "it has happened, with this result", "skip it"],
)
def test_an_unknown_irreversible_effect_asks_a_person_and_does_what_the_answer_says(
    trials: Trials, answer: dict[str, str], sent: int
) -> None:
    """Nobody guesses: the run pauses with the question, and goes on as a person says."""
    trial = trials.trial()
    assert trial.start("first", at="effect.returned", nth=SENT).ends() == -signal.SIGKILL
    paused = trial.start("second", answers=False).ended()
    assert paused["status"] == "paused"
    [request] = paused["approvals"]
    assert (request["kind"], request["step_id"], request["tool"]) == ("unknown_outcome", "send", "send")
    assert len(arrivals(trial.moment(), "send")) == 1
    assert trial.start("third", unknown=answer).ended()["status"] == "done"
    assert len(arrivals(trial.moment(), "send")) == sent


def test_a_living_owner_keeps_its_run_and_a_dead_one_loses_it_at_once(trials: Trials) -> None:
    """While the first process lives, a second is told that the run is busy; when it is killed, the next takes over."""
    trial = trials.trial()
    first = trial.start("first", at="effect.intended", nth=SHIPPED, action="stop")
    first.until("stopped")
    second = trial.start("second", patience_s=0.0)
    assert second.ends() != 0
    assert "RunBusy" in second.log()
    first.signal(signal.SIGKILL)
    assert first.ends() == -signal.SIGKILL
    assert trial.violations(trial.moment(), trial.start("third").ended()) == []


@pytest.mark.parametrize("nth", [CHARGED, SHIPPED, SENT])
def test_ctrl_c_stops_in_order_and_the_next_process_goes_on(trials: Trials, nth: int) -> None:
    """SIGINT ends the drive: an effect whose intent is accepted is awaited, and nothing is left in doubt."""
    trial = trials.trial()
    assert trial.start("first", at="effect.intended", nth=nth, action="interrupt").ends() > 0
    before = trial.moment()
    assert before.in_doubt() == set()
    assert trial.violations(before, trial.start("second").ended()) == []


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_goal_after_a_run_whose_end_was_not_checkpointed_is_a_run_of_its_own(trials: Trials, durability: str) -> None:
    """Killed between the end of a run and LangGraph's checkpoint of it, the thread takes the next goal as a new run,
    also where the last checkpoint is an interrupt that was answered."""
    trial = trials.trial()
    assert trial.start("first", at="run.status_set", nth=3, durability=durability).ends() == -signal.SIGKILL
    first = trial.run_id()
    again = trial.start("second", request=f"{trial.book} again").ended()
    assert again["run_id"] != first
    assert (again["status"], again["state"]) == ("done", "done")


def test_a_worker_that_sleeps_within_a_commit_keeps_its_run_no_longer_than_its_lease(trials: Trials) -> None:
    """Stopped between its outcome row and the commit it holds the lease's row; the server ends that, another worker
    takes over, and the booking is there once."""
    trial = trials.trial()
    first = trial.start("first", at="transaction.before_commit", action="stop", lease_s=3.0)
    first.until("stopped")
    before = trial.moment()
    ended = trial.start("second", lease_s=3.0).ended()
    first.signal(signal.SIGCONT)
    assert first.ends() >= 0
    assert trial.violations(before, ended) == []
