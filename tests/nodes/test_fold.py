"""Tests of the picture of a run: pure, legal at every row, and true to what effects and people have done."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.fold import Output, RunFold, fold
from plans.errors import VersionTooNew
from plans.limits import Limits
from plans.moves import MOVES, SETTLED, Status
from tests.nodes.rows import (
    OUTPUT,
    Row,
    a_plan,
    a_step,
    answered,
    asked,
    begun,
    decided,
    done,
    failed,
    intended,
    planned,
    refused,
)

STEPS = ("a", "b", "c")
PLAN = a_plan(*(a_step(step_id) for step_id in STEPS))


def legal_rows(picture: RunFold, unit: str) -> list[Row]:
    """What the nodes may write next about this step run."""
    run = picture.run(unit)
    attempt = run.attempt + 1
    if unit in picture.undecided:
        return verdicts_on(picture, unit)
    if any(verdict.step_id == unit and verdict.verdict == "fallback" for verdict in picture.queue):
        return [("fallback", unit, run.attempt, {"tool": "other", "degraded": "answered by other"})]
    if any(request.step_id == unit for request in picture.asked.values()):
        return answers_to(picture, unit)
    if run.status == "pending":
        skipped: Row = ("skip", unit, 0, {"reason": "its condition is false"})
        return [done(unit, attempt), failed(unit, attempt), intended(unit, attempt), refused(unit, attempt), skipped]
    if run.in_doubt is not None:
        if run.failure is not None and not run.resend:
            return [asked(unit, "unknown_outcome", attempt=run.attempt)]
        again = [intended(unit, attempt)] if run.resend else []
        return [
            *again,
            done(unit, run.attempt),
            failed(unit, run.attempt),
            failed(unit, run.attempt, "UNKNOWN_OUTCOME"),
        ]
    return []


def verdicts_on(picture: RunFold, unit: str) -> list[Row]:
    """What observe may decide about a failure."""
    run = picture.run(unit)
    code = run.failure.code if run.failure else ""
    if run.in_doubt is not None:
        return [decided(unit, run.attempt, "ask", code), decided(unit, run.attempt, "retry", code, not_before=1.0)]
    names: tuple[Any, ...] = ("next", "retry", "fallback", "finish")
    return [decided(unit, run.attempt, name, code) for name in names]


def answers_to(picture: RunFold, unit: str) -> list[Row]:
    """What a person may say."""
    settled = {"how": "happened", "by": "ann", "why": "seen", "output": OUTPUT}
    return [
        answered(unit, {"type": "respond", "message": "1"}, "unknown_outcome", settlement=settled),
        answered(unit, {"type": "approve"}, "unknown_outcome", settlement={"how": "run", "by": "ann", "why": "no"}),
        answered(unit, {"type": "reject"}, "unknown_outcome", settlement={"how": "skip", "by": "ann", "why": "no"}),
    ]


def histories(choose: Callable[[int], int]) -> list[Row]:
    """A run's rows, each of them one of those that may follow."""
    rows: list[Row] = [begun(), planned(PLAN)]
    picture = fold(rows)
    for _ in range(40):
        possible = [row for unit in STEPS for row in legal_rows(picture, unit)]
        if not possible:
            break
        rows.append(possible[choose(len(possible))])
        picture.apply(*rows[-1])
    return rows


drawn = st.lists(st.integers(0, 10_000), min_size=40, max_size=40).map(
    lambda numbers: histories(lambda count, left=list(numbers): left.pop() % count)  # type: ignore[misc]
)


@given(drawn, st.integers(0, 42))
def test_folding_is_pure_and_row_by_row(rows: list[Row], cut: int) -> None:
    """The same rows give the same picture, whether folded at once or in two parts; no row is changed by it."""
    before = copy.deepcopy(rows)
    whole = fold(rows)
    parts = fold(rows[:cut])
    for row in rows[cut:]:
        parts.apply(*row)
    assert parts == whole == fold(rows)
    assert rows == before


@given(drawn)
def test_every_move_is_legal_and_nothing_leaves_done_or_skipped(rows: list[Row]) -> None:
    """Row after row each step run's status is the one before, or one of its legal successors, or two moves in one."""
    picture = RunFold()
    seen: dict[str, Status] = dict.fromkeys(STEPS, "pending")
    for row in rows:
        picture.apply(*row)
        for unit in STEPS:
            now = picture.status(unit)
            through_running = "running" in MOVES[seen[unit]] and now in MOVES["running"]
            assert now == seen[unit] or now in MOVES[seen[unit]] or through_running, row
            seen[unit] = now


@given(drawn)
def test_what_is_counted_never_shrinks_and_what_is_undecided_has_failed(rows: list[Row]) -> None:
    """Usage only grows; every undecided step run has a failure, and every settled one has none in the queue."""
    picture = RunFold()
    attempts = steps = 0
    for row in rows:
        picture.apply(*row)
        assert (picture.usage.attempts, picture.usage.steps) >= (attempts, steps)
        attempts, steps = picture.usage.attempts, picture.usage.steps
        assert all(picture.run(unit).failure is not None for unit in picture.undecided)
        settled = {unit for unit in STEPS if picture.status(unit) in SETTLED}
        assert not settled & {verdict.step_id for verdict in picture.queue}
        assert not settled & set(picture.undecided)


def test_a_definite_failure_of_an_effect_takes_back_its_own_claim_only() -> None:
    """Two steps with the same effect: when the second fails for sure, the first has still had it."""
    rows = [begun(), planned(PLAN), intended("a"), done("a"), intended("b"), failed("b")]
    assert fold(rows).effects == {"send|1": ("a",)}
    assert fold([begun(), planned(PLAN), intended("b"), failed("b")]).effects == {}


def test_an_effect_that_happened_without_success_stays_known_and_its_approval_is_used_up() -> None:
    """A letter that was sent and whose result was no success was sent; approving it again is another decision."""
    approved: Row = answered("a", {"type": "approve"})
    intent = intended("a", 1, "1")
    rows = [begun(), planned(PLAN), asked("a"), approved, ("intent", "a", 1, {**intent[3], "call": "send|1"})]
    assert fold(rows).decisions
    after = fold([*rows, failed("a", 1, "CRITERION_FALSE", happened=True)])
    assert after.effects == {"1": ("a",)}
    assert not after.decisions


@pytest.mark.parametrize(
    "intent_then",
    [failed("a", 1, "UNKNOWN_OUTCOME"), decided("a", 1, "ask", "UNKNOWN_OUTCOME")],
    ids=["unknown", "asked"],
)
def test_an_effect_in_doubt_is_kept_as_one_that_happened(intent_then: Row) -> None:
    """Until it is settled, nobody else may have the same effect unasked, and a revision keeps its step."""
    rows = [begun(), planned(PLAN), intended("a"), failed("a", 1, "UNKNOWN_OUTCOME"), intent_then]
    picture = fold(rows)
    assert picture.effects == {"send|1": ("a",)}
    assert [step.id for step in picture.kept()] == ["a"]


def test_a_repair_that_came_to_nothing_gives_way_and_stays_counted() -> None:
    """Of two verdicts on one outcome the second one waits alone; what was decided counts whatever becomes of it, a
    template's simplified plan and a person's instruction do not."""
    repairs = [failed("b"), decided("b", 1, "local_replan"), decided("b", 1, "global_replan")]
    picture = fold([begun(), planned(PLAN), *repairs])
    assert [verdict.verdict for verdict in picture.queue] == ["global_replan"]
    assert (picture.local_replans["b"], picture.global_replans) == (1, 1)
    simpler = decided("b", 1, "global_replan", degraded=True, counted=False)
    picture = fold([begun(), planned(PLAN), *repairs, simpler])
    assert (picture.simplified, picture.global_replans, len(picture.queue)) == (True, 1, 1)
    picture = fold([begun(), planned(PLAN), *repairs, decided("b", 1, "ask")])
    assert (picture.queue, picture.run("b").is_over) == ([], False)


def test_a_question_about_the_plan_is_gone_with_any_revision() -> None:
    """So is a plan that a person has written and that was not used; a question about a step that stays is not."""
    rows = [begun(), planned(PLAN), asked("@plan", "question"), asked("c")]
    picture = fold(rows)
    assert picture.question is not None
    after = fold([*rows, planned(PLAN.model_copy(update={"revision": 2}))])
    assert (after.question, list(after.asked)) == (None, ["ask-c"])
    edit = answered("@plan", {"type": "edit", "args": {"steps": []}}, "question", about={"goal": "g"})
    written = fold([*rows, edit])
    assert (written.is_edited, written.rewritten) == (True, {"plan": {"steps": []}, "asked": {"goal": "g"}})
    assert not fold([*rows, edit, ("edit_dropped", "@plan", 0, {})]).is_edited


def test_a_revision_resets_what_it_changes_and_nothing_else() -> None:
    """A changed step starts anew and goes on counting its attempts; questions, verdicts and edits about it are gone."""
    edit = answered("c", {"type": "edit", "args": {"x": 1}})
    rows = [
        begun(), planned(PLAN), done("a"), failed("b"), decided("b", 1, "local_replan"),
        asked("c"), edit, asked("c", approval_id="again"),
    ]  # fmt: skip
    before = fold(rows)
    assert (before.edits, list(before.asked)) == ({"c": {"tool": "send", "args": {"x": 1}}}, ["again"])
    changed = a_plan(a_step("a"), a_step("b", tool="other"), a_step("c", tool="other"), revision=2)
    after = fold([*rows, planned(changed, "local", ["b#1"])])
    assert after.steps["a"] == before.steps["a"]
    assert (after.status("b"), after.run("b").attempt, after.run("b").tries) == ("pending", 1, 0)
    assert (after.queue, after.undecided, after.asked, after.edits) == ([], {}, {}, {})


def test_a_for_each_that_is_redefined_forgets_its_children() -> None:
    """Children belong to the list they came from."""
    rows = [begun(), planned(PLAN), ("expansion", "a", 0, {"elements": ["h1", "h2"]}), done("a[0]"), failed("a[1]")]
    before = fold(rows)
    assert (before.children("a"), before.status("a")) == (["a[0]", "a[1]"], "running")
    after = fold([*rows, planned(a_plan(a_step("a", tool="other")), "global")])
    assert (after.children("a"), after.undecided) == ([], {})
    assert not {"a[0]", "a[1]"} & set(after.steps)


def test_every_plan_written_anew_counts() -> None:
    """Several verdicts that want a new plan are one replan; a mend that became one counts too."""
    wishes = [failed("a", code="CRITERION_FALSE"), decided("a", 1, "global_replan"),
              failed("b", code="CRITERION_FALSE"), decided("b", 1, "global_replan")]  # fmt: skip
    asked_twice = fold([begun(), planned(PLAN), *wishes])
    assert (asked_twice.global_replans, asked_twice.usage.global_replans) == (1, 1)
    anew = planned(a_plan(a_step("d"), revision=2), "global", ["a#1"])
    assert fold([begun(), planned(PLAN), *wishes, anew]).queue == []
    mend = [failed("a", code="NOT_FOUND"), decided("a", 1, "local_replan"), anew]
    escalated = fold([begun(), planned(PLAN), *mend])
    assert (escalated.local_replans["a"], escalated.global_replans) == (1, 1)


def test_reopening_gives_back_what_a_limit_took_and_nothing_else() -> None:
    """Steps that a limit refused may start again, decided or not; one that failed for another reason has failed."""
    rows = [
        begun(), planned(PLAN), refused("a"), decided("a", 1, "finish", "LIMIT_TIME"), refused("b"),
        failed("c", code="NOT_FOUND"), decided("c", 1, "finish", "NOT_FOUND"),
        ("finish", None, 0, {"status": "limited", "wall_s": 2.0}),
    ]  # fmt: skip
    assert fold(rows).finished is not None
    after = fold([*rows, ("reopened", None, 0, {"limits": Limits(max_wall_s=9.0).model_dump()})])
    assert [after.status(unit) for unit in STEPS] == ["pending", "pending", "failed"]
    assert (after.undecided, [v.step_id for v in after.queue], after.finished) == ({}, ["c"], None)
    assert after.head is not None
    assert after.head.limits.max_wall_s == 9.0


def test_what_a_person_settles_is_settled_by_the_decision_itself() -> None:
    """One row both answers the question and ends the doubt: a crash cannot come between."""
    doubt = [begun(), planned(PLAN), intended("a"), failed("a", 1, "UNKNOWN_OUTCOME"), asked("a", "unknown_outcome")]
    for how, status in (("run", "running"), ("skip", "skipped"), ("happened", "done")):
        settlement = {"how": how, "by": "ann", "why": "seen", "output": OUTPUT}
        picture = fold([*doubt, answered("a", {"type": "approve"}, "unknown_outcome", settlement=settlement)])
        assert (picture.status("a"), picture.asked, picture.undecided) == (status, {}, {})
        assert picture.run("a").resend == (how == "run")


def test_questions_are_listed_in_the_order_of_the_plan() -> None:
    """Whoever asked first: the list that people and inboxes read is always the same."""
    rows = [begun(), planned(PLAN), asked("c"), asked("a[2]"), asked("a[10]"), asked("b")]
    assert [request.step_id for request in fold(rows).waiting()] == ["a[2]", "a[10]", "b", "c"]


def test_an_unknown_kind_of_row_is_refused() -> None:
    """A picture with holes would be wrong: a newer row is not passed over."""
    with pytest.raises(VersionTooNew):
        fold([begun(), ("news", None, 0, {})])


@pytest.mark.parametrize("media_type", ["application/json", "text/html"])
def test_a_row_says_no_more_of_a_result_than_it_has_to_and_old_rows_are_read(media_type: str) -> None:
    """What can be told from the reference is left out; a row of the first version, which said it, means the same."""
    sha256 = "ab" * 32
    output = Output(f"sha256-{sha256}", 3, sha256, media_type)
    in_full = {"output_ref": f"sha256-{sha256}", "size": 3, "sha256": sha256, "media_type": media_type}
    assert "sha256" not in output.as_stored()
    assert Output.from_stored(output.as_stored()) == Output.from_stored(in_full) == output
    foreign = Output("by-hand", 3, sha256, media_type)
    assert Output.from_stored(foreign.as_stored()) == foreign
