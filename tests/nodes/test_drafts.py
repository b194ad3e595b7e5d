"""What is kept of drafts: each once, small whatever was wrong with it, and also what older journals know of theirs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from checkpoints.bodies import is_large
from nodes.drafts import MAX_FAULTS, drafted_row, keep_draft
from nodes.fold import fold
from nodes.state import Drafted, Planning
from plans.faults import Fault
from plans.plan import PlanDraft
from tests.nodes.rows import Row, a_plan, a_step, begun, planned

DRAFT = PlanDraft(goal="g", steps=(a_step("a"),))
PLANNER: dict[str, Any] = {"source": "model", "model": "m-1", "mode": "tools", "prompt_sha256": "ab" * 32}


def judged(drafted: Drafted, *errors: Fault, tries: int = 0, revision: int = 1) -> Row:
    """The row that a judged draft becomes."""
    return "draft", None, 0, drafted_row(drafted, Planning(tries=tries), errors, revision)


def test_a_row_is_small_whatever_was_wrong() -> None:
    """It stands in its row, where queries find it: how many faults more there were is said."""
    worst = Fault(code="MISSING_DEPENDENCY", message="\U0001f600" * 900, step="s" * 900, path="\U0001f600" * 900)
    _, _, _, body = judged(Drafted(**PLANNER, question="q" * 200), *[worst] * 300)
    assert not is_large(json.dumps(body, ensure_ascii=False))
    assert (len(body["faults"]), body["more_faults"]) == (MAX_FAULTS, 300 - MAX_FAULTS)


def test_a_secret_that_a_fault_quotes_is_blanked() -> None:
    """A row is read by many."""
    _, _, _, body = judged(Drafted(**PLANNER), Fault(code="PLAN_SYNTAX", message="text begins password=hunter2secret"))
    assert "hunter2secret" not in json.dumps(body)


def test_drafts_are_told_in_their_order_each_once() -> None:
    """A refused one, the one that was used, and a row that was written again after a crash."""
    fault = Fault(code="UNKNOWN_TOOL", message="no tool x", step="a")
    refused = judged(Drafted(**PLANNER, question="q0"), fault)
    used = judged(Drafted(**PLANNER, question="q1", draft=DRAFT), tries=1)
    picture = fold([begun(), refused, refused, used, planned(a_plan(a_step("a")))])
    assert [(each["name"], each["valid"], each["try"]) for each in picture.drafts.values()] == [
        ("q0", False, 0),
        ("q1", True, 1),
    ]
    assert picture.drafts["q0"]["faults"][0]["code"] == "UNKNOWN_TOOL"


async def test_a_draft_is_written_down_once() -> None:
    """`validate`, entered again after a crash, finds it written; another one is."""
    written: list[str] = []

    async def record(kind: str, *, body: dict[str, Any]) -> None:
        written.append(body["name"])
        picture.apply(kind, None, 0, body)

    picture = fold([begun()])
    session: Any = SimpleNamespace(fold=picture, record=record)
    for question in ("q0", "q0", "q1"):
        await keep_draft(session, Drafted(**PLANNER, question=question), Planning(), [])
    assert written == ["q0", "q1"]


def test_a_draft_without_a_question_is_named_by_what_it_says() -> None:
    """Two edits of the same revision are two drafts; the same one twice is one."""
    other = DRAFT.model_copy(update={"goal": "h"})
    names = [judged(Drafted(draft=draft))[3]["name"] for draft in (DRAFT, other, DRAFT)]
    assert names[0] == names[2] != names[1]


def test_a_journal_without_rows_of_drafts_still_knows_who_wrote_its_plans() -> None:
    """What 0.1.0 has left is told from the plans themselves."""
    _, _, _, body = planned(a_plan(a_step("a"), revision=2))
    picture = fold([begun(), ("plan", None, 0, {**body, "model": "m-0", "prompt_sha256": "cd"})])
    [found] = picture.drafts.values()
    assert (found["revision"], found["model"], found["prompt_sha256"], found["valid"]) == (2, "m-0", "cd", True)
