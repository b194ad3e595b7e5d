"""Older journals and states are read step by step up to today's form; newer ones are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from checkpoints.serializer import StateSerializer
from nodes.fold import RunFold, fold
from nodes.fold_rows import APPLY
from nodes.fold_verdicts import promises
from nodes.requests import run_record
from nodes.state import Drafted, Planning, RunHead
from nodes.validate import validate
from nodes.versions import (
    JOURNAL_UPGRADES,
    JOURNAL_VERSION,
    journal_version,
    read_head,
    readable_state,
    row_body,
    stored_head,
)
from plans.errors import VersionTooNew
from plans.plan import SCHEMA_VERSION, Plan, PlanDraft, StepDraft
from plans.versions import UPGRADES
from tests.nodes.rows import a_plan, a_step, begun
from tests.plans.coming import NEW, OLD


def test_every_version_has_its_upgrade() -> None:
    """No version that was ever written is left without a way to today's."""
    assert sorted(JOURNAL_UPGRADES) == list(range(1, JOURNAL_VERSION))
    assert sorted(UPGRADES) == list(range(1, SCHEMA_VERSION))


def test_every_kind_of_row_is_described_with_who_writes_it() -> None:
    """docs/journal.md has a line for each kind that is folded and for no other, and each file it names writes that
    kind; those that version 1 does not have are named where the version is explained."""
    root = Path(__file__).resolve().parents[2]
    lines = re.findall(
        r"^\| `(\w+)` \| .* \| (.*) \| (\d) \|$", (root / "docs/journal.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [kind for kind, _, _ in lines] == list(APPLY)
    writers = [(kind, name) for kind, names, _ in lines for name in re.findall(r"`([\w/]+\.py)`", names)]
    assert [each for each in writers if f'"{each[0]}"' not in (root / each[1]).read_text(encoding="utf-8")] == []
    explained = (
        (root / "nodes/versions.py").read_text(encoding="utf-8").split("New kinds of\nrows: ")[1].split(" All\n")[0]
    )
    assert re.findall(r"\w+", explained.replace(" and ", ", ")) == [kind for kind, _, since in lines if since == "2"]


def test_a_row_goes_through_each_step_from_its_own_version() -> None:
    """Upgrades are applied in order, and those before the row's version are not."""

    def named(step: int) -> Any:
        def upgrade(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**body, "way": [*body.get("way", ()), f"{kind}{step}"]}

        return upgrade

    upgrades = {step: named(step) for step in (1, 2, 3)}
    assert row_body("plan", {}, 1, upgrades=upgrades, newest=4) == {"way": ["plan1", "plan2", "plan3"]}
    assert row_body("plan", {}, 3, upgrades=upgrades, newest=4) == {"way": ["plan3"]}
    assert row_body("plan", {}, 4, upgrades=upgrades, newest=4) == {}


def test_a_journal_without_a_version_is_of_the_first() -> None:
    """The first version did not say which it was."""
    assert journal_version({}) == 1


def test_a_newer_journal_is_refused() -> None:
    """What is told says which versions meet, and that nothing was changed."""
    with pytest.raises(VersionTooNew, match=rf"version {JOURNAL_VERSION + 1}.*up to {JOURNAL_VERSION}"):
        journal_version({"journal_version": JOURNAL_VERSION + 1})
    with pytest.raises(VersionTooNew, match="sublimated"):
        fold([("sublimated", None, 0, {})])


def test_state_goes_through_each_step_and_the_future_is_refused() -> None:
    """State without a version is fresh: it has today's form."""
    upgrades = {1: lambda state: {**state, "way": "one"}, 2: lambda state: {**state, "way": f"{state['way']} two"}}
    assert readable_state({"schema_version": 1}, upgrades=upgrades, newest=3)["way"] == "one two"
    assert readable_state({"goal": "x"}, upgrades=upgrades, newest=3) == {"goal": "x"}
    with pytest.raises(VersionTooNew, match="schema_version 4"):
        readable_state({"schema_version": 4}, upgrades=upgrades, newest=3)


def test_a_run_stays_on_the_version_it_was_begun_on() -> None:
    """Whoever has written the last revision, and in which version: the highest that was ever written counts."""
    plans = [a_plan(a_step("a"), revision=number).model_dump(mode="json") for number in (1, 2, 3)]
    written = [NEW.written(plans[0], 2), OLD.written(plans[1], 1), NEW.written(plans[2], 2)]
    rows = [begun(), *(("plan", None, 0, {**row, "purpose": "first"}) for row in written)]
    assert [fold(rows[:until], NEW).contract for until in (1, 2, 3, 4)] == [0, 2, 2, 2]
    to_old = [fold(rows[:until], OLD) for until in (2, 3)]
    assert [(each.contract, each.form and each.form.fell_back) for each in to_old] == [(2, True), (2, False)]


@pytest.mark.parametrize("checked", [False, True])
def test_a_plan_that_was_given_is_stored_so_that_either_worker_can_begin_it(checked: bool) -> None:
    """In the old version where that can say it, and then as an old worker would have stored it, so that the same
    request has the same hash; else in the new one, which the old worker refuses."""
    draft = PlanDraft(goal="g", steps=(StepDraft(id="a", tool="x", title="Look", reason="why", verify_after=checked),))
    head = RunHead(run_id="r", thread_id="t", request_id="q", goal="g", given_plan=draft)
    stored = stored_head(head, NEW)
    assert read_head(stored, NEW) == head
    if checked:
        with pytest.raises(VersionTooNew, match="schema_version 2"):
            read_head(stored, OLD)
        return
    old = read_head(stored, OLD)
    assert old.given_plan is not None
    assert old.given_plan.steps[0].reason == "[Look] why"
    assert stored_head(old, OLD) == stored
    assert run_record(old, OLD).input_sha256 == run_record(head, NEW).input_sha256


@pytest.mark.parametrize("checked", [False, True])
def test_a_simplified_plan_that_a_template_promises_is_stored_for_either_worker(checked: bool) -> None:
    """As a plan that was given is."""
    simpler = PlanDraft(goal="g", steps=(StepDraft(id="a", tool="x", title="Look", verify_after=checked),))
    written = NEW.written(a_plan(a_step("a")).model_dump(mode="json"), 2)
    row = ("plan", None, 0, {**written, "purpose": "first", **promises(simpler, NEW, critical=False)})
    assert fold([begun(), row], NEW).on_exhausted == simpler
    if checked:
        with pytest.raises(VersionTooNew):
            fold([begun(), row], OLD)
        return
    kept = fold([begun(), row], OLD).on_exhausted
    assert kept is not None
    assert (kept.steps[0].title, kept.steps[0].reason) == (None, "[Look] ")


@pytest.mark.parametrize(("purpose", "edge"), [("first", "redraft"), ("global", "redraft"), ("local", "repatch")])
async def test_a_draft_of_another_version_is_written_down_anew(purpose: Any, edge: str) -> None:
    """What a checkpoint holds of a draft loses what this code does not know; the answer it was made of is in the
    journal, and read again. No try is spent."""
    session: Any = SimpleNamespace(cancelled=False, fold=RunFold())
    drafted = Drafted(schema_version=SCHEMA_VERSION + 1, draft=PlanDraft(goal="g", steps=(a_step("a"),)))
    state: Any = {"drafted": drafted, "planning": Planning(purpose=purpose, trigger="t")}
    assert await validate(state, session) == {"drafted": None, "faults": [], "edge": edge}


def test_a_checkpoint_with_a_plan_of_a_newer_version_can_be_read() -> None:
    """Its plan is a cache of the journal's, and is written over: what this code does not know of it is not missed."""

    class Newer(BaseModel):
        plan_id: str = "p"
        goal: str = "g"
        budget: int = 3
        steps: tuple[str, ...] = ()

    Newer.__module__, Newer.__name__, Newer.__qualname__ = Plan.__module__, "Plan", "Plan"
    serializer = StateSerializer()
    found = serializer.loads_typed(serializer.dumps_typed({"current_plan": Newer()}))["current_plan"]
    assert isinstance(found, Plan)
    assert found != a_plan(a_step("a"))
