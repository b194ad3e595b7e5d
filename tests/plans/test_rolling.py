"""While a version of the plan contract is rolled out: what is written in which versions, who reads what, which runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.errors import VersionTooNew
from plans.plan import Plan, Step
from plans.versions import OLDER, PLAN_VERSIONS, UNSAID, CannotSay, PlanVersions, place
from tests.plans.coming import LATER, NEW, OLD, up

WORDS = st.text(st.sampled_from("ab[] "), max_size=5)
STEPS = st.builds(
    lambda title, reason, checked: Step(id="s", tool="x", title=title, reason=reason, verify_after=checked),
    st.none() | WORDS,
    WORDS,
    st.booleans(),
)
PLANS = st.builds(lambda step: Plan(plan_id="p", goal="g", steps=(step,)).model_dump(mode="json"), STEPS)


def plan(**more: Any) -> dict[str, Any]:
    """A stored plan of one step."""
    return Plan(plan_id="p", goal="g", steps=(Step(id="s", tool="x", **more),)).model_dump(mode="json")


def test_today_one_version_is_written() -> None:
    """There is no other; whatever the share of runs is, a row holds one plan and nothing beside it."""
    for canary in (0.0, 100.0):
        today = replace(PLAN_VERSIONS, canary=canary)
        assert today.written(plan(), today.of_run("r")) == {"plan": plan()}


def test_a_run_on_the_new_version_is_written_in_both() -> None:
    """The new form stands first; who knows only the old one finds it beside, and that it fell back is known."""
    row = NEW.written(plan(title="Look", reason="why"), 2)
    assert (row["plan"]["schema_version"], row["plan"]["steps"][0]["title"]) == (2, "Look")
    assert row[OLDER]["1"]["steps"][0]["reason"] == "[Look] why"
    new, old = NEW.read(row), OLD.read(row)
    assert (new.written, new.read, new.fell_back) == (2, 2, False)
    assert (old.written, old.read, old.fell_back) == (2, 1, True)
    assert old.plan == row[OLDER]["1"]


def test_a_run_on_the_old_version_is_written_in_the_old_one() -> None:
    """Only there: nobody falls back, and the new code raises it."""
    row = NEW.written(plan(title="Look", reason="why"), 1)
    assert (row["plan"]["schema_version"], OLDER in row) == (1, False)
    assert not OLD.read(row).fell_back
    assert NEW.read(row).plan["steps"][0]["title"] == "Look"


@pytest.mark.parametrize("on", [1, 2])
def test_what_the_old_version_cannot_say_is_refused_there_with_the_reason(on: int) -> None:
    """It is written in the new one alone, whatever version its run is on, and the old worker is told why."""
    row = NEW.written(plan(verify_after=True), on)
    assert (row["plan"]["schema_version"], row[UNSAID]) == (2, {"1": "step s has verify_after"})
    with pytest.raises(
        VersionTooNew, match=r"version 2.*up to 1, and version 1 cannot say it: step s has verify_after"
    ):
        OLD.read(row)


def test_a_way_down_that_loses_something_is_none() -> None:
    """What comes back from the old version as another plan is not written in it: here a reason that looks like a
    title."""
    row = NEW.written(plan(reason="[not a title] why"), 2)
    assert OLDER not in row
    assert row[UNSAID] == {"1": "it does not come back from version 1 as it was"}


def test_after_the_window_old_workers_are_refused() -> None:
    """The release that has no way down writes its own version only."""
    row = LATER.written(plan(title="Look"), LATER.of_run("r"))
    assert row.keys() == {"plan"}
    with pytest.raises(VersionTooNew, match="Go on with the newer version; nothing was changed"):
        OLD.read(row)


def test_a_worker_two_versions_behind_takes_what_it_knows_or_nothing() -> None:
    """Each version before the newest is written as long as there is a way down to it, step by step."""
    third = PlanVersions(
        newest=3,
        upgrades={1: up, 2: lambda stored: stored},
        downgrades={**NEW.downgrades, 3: lambda stored: stored},
    )
    row = third.written(plan(title="Look"), 3)
    assert sorted(row[OLDER]) == ["1", "2"]
    assert (OLD.read(row).read, NEW.read(row).read) == (1, 2)
    checked = third.written(plan(verify_after=True), 3)
    assert (sorted(checked[OLDER]), checked[UNSAID]) == (["2"], {"1": "step s has verify_after"})
    assert NEW.read(checked).read == 2
    with pytest.raises(VersionTooNew):
        OLD.read(checked)


@given(PLANS, st.sampled_from([1, 2]))
def test_whoever_reads_it_it_is_the_same_plan_or_refused(stored: dict[str, Any], on: int) -> None:
    """The new worker always has what was written; the old one has that in its own words, or nothing."""
    row = NEW.written(stored, on)
    assert NEW.read(row).plan == {**stored, "schema_version": 2}
    try:
        old = OLD.read(row).plan
    except VersionTooNew:
        return
    assert NEW.read({"plan": old}).plan == {**stored, "schema_version": 2}


@given(PLANS)
def test_what_is_read_once_is_stored_in_the_oldest_words_there_are(stored: dict[str, Any]) -> None:
    """A plan that a request brings along: the same request is the same bytes from either worker."""
    oldest = NEW.oldest(stored)
    if oldest["schema_version"] == 1:
        assert OLD.oldest(OLD.read({"plan": oldest}).plan) == oldest
    assert NEW.read({"plan": oldest}).plan == {**stored, "schema_version": 2}


def test_a_share_of_runs_is_decided_by_their_ids_alone() -> None:
    """Evenly, the same in every worker; and who raises the share moves no run back."""
    runs = [f"run-{number}" for number in range(4_000)]
    on_new = {
        share: {run for run in runs if replace(NEW, canary=share).of_run(run) == 2}
        for share in (0.0, 10.0, 50.0, 100.0)
    }
    assert [len(found) for found in on_new.values()] == [
        0,
        pytest.approx(400, abs=80),
        pytest.approx(2_000, abs=150),
        4_000,
    ]
    assert on_new[0.0] < on_new[10.0] < on_new[50.0] < on_new[100.0]
    assert all(0 <= place(run) < 100 for run in runs)
    assert place("run-1") == pytest.approx(30.6241, abs=1e-4)  # workers of two releases have to agree on it


def test_without_a_way_down_every_run_is_on_the_newest() -> None:
    """There is nothing else to be on."""
    assert {replace(each, canary=0.0).of_run("r") for each in (OLD,)} == {1}
    assert replace(LATER, canary=0.0).of_run("r") == 2


def test_a_way_down_that_breaks_is_told() -> None:
    """Only CannotSay means that a plan cannot be said: a bug in a downgrade is not passed over."""

    def broken(_: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("steps")

    def refusing(_: dict[str, Any]) -> dict[str, Any]:
        raise CannotSay("never")

    with pytest.raises(KeyError):
        PlanVersions(newest=2, upgrades={1: up}, downgrades={2: broken}).written(plan(), 2)
    assert PlanVersions(2, {1: up}, {2: refusing}).written(plan(), 2)[UNSAID] == {"1": "never"}
