"""Each resume records why it was and what it found; who shows the run reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graph.commands.resumed import WHAT, WHY, resumptions
from graph.result import RunResult
from nodes.fold import fold
from plans.decisions import Approve
from tests.graph.kits import Shop
from tests.nodes.model_server import ScriptedModel
from tests.nodes.rows import Row, begun
from tests.running import plan, running, step

ASKS = step("s1", "send", args={"to": "${inputs.who}", "text": "hi"}, require_approval=True)
PRICE = step("p", "price", args={"item": "ball"})


def told(result: RunResult) -> list[tuple[Any, ...]]:
    """Trigger, result, about and end of each."""
    return [(each.trigger, each.result, each.about, each.ended) for each in result.resumes]


async def test_a_limit_and_a_decision_are_told_apart(database_url: str, tmp_path: Path) -> None:
    """Stopped by a limit, raised, paused, looked at, decided: two resumptions, each with how it ended; the look changes
    nothing and is none."""
    shop = Shop()
    each = step("e", "double", args={"number": "${item}"}, for_each="${inputs.numbers}")
    asks = {**ASKS, "args": {"to": "ann", "text": "hi"}, "depends_on": ["e"]}
    async with running(database_url, tmp_path, [shop.kit]) as agent:
        inputs = {"numbers": [1, 2, 3]}
        first = await agent.run(plan=plan(each, asks), inputs=inputs, thread_id="t", limits={"max_for_each": 2})
        assert (first.status, first.resumes, "resumes" in first.as_json()) == ("limited", (), False)
        paused = await agent.resume("t", limits=first.raise_limits)
        assert (await agent.resume("t")).status == "paused"
        done = await agent.resume("t", decisions={paused.approvals[0].approval_id: Approve()})
    assert told(done) == [("limit", "goes_on", (), "paused"), ("decision", "goes_on", (), "done")]
    assert [each["trigger"] for each in done.as_json()["resumes"]] == ["limit", "decision"]
    lines = list(resumptions(done.resumes))
    assert lines[0].endswith("after a limit: it went on, until it was paused")


async def test_inputs_that_have_changed_are_named_and_what_came_of_it(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """With a planner the rest is planned anew, then an instruction comes; without one the run ends."""
    file = tmp_path / "who.txt"
    shop = Shop()
    for model, expected in ((endpoint, ("plans_anew", ("who",), "paused")), (None, ("ends", (), "failed"))):
        file.write_text("ann")
        endpoint.answers(json.dumps(plan({**ASKS, "id": "n1"})), json.dumps(plan(PRICE)))
        thread = f"t{expected[0]}"
        async with running(database_url, tmp_path, [shop.kit], model=model) as agent:
            paused = await agent.run(plan=plan(ASKS), inputs={"who": file}, thread_id=thread)
            file.write_text("bob")
            again = await agent.resume(thread, decisions={paused.approvals[0].approval_id: Approve()})
            assert told(again) == [("decision", *expected)]
            if model is not None:
                after = await agent.run("only look the price up", thread_id=thread)
                assert told(after)[1:] == [("instruction", "goes_on", (), "done")]
    assert shop.calls == {"price": 1}


def test_what_is_told_has_words_for_all_there_is() -> None:
    """Rows are folded in their order; every trigger and every result reads as a sentence."""
    said: list[Row] = [
        ("resumed", None, 0, {"trigger": trigger, "result": result, "about": ["x"], "at": 1.0})
        for trigger in WHY
        for result in WHAT
    ]
    found = fold([begun(), *said, ("finish", None, 0, {"status": "cancelled", "wall_s": 1.0})]).resumes
    assert [(each.trigger, each.result) for each in found] == [(one, other) for one in WHY for other in WHAT]
    assert [each.ended for each in found[-2:]] == [None, "cancelled"]


async def test_a_cancelled_run_says_that_it_was_gone_on_with_to_be_ended(database_url: str, tmp_path: Path) -> None:
    """Nobody drives a run that waits for a person: who cancels it goes on with it, to its end."""
    shop = Shop()
    async with running(database_url, tmp_path, [shop.kit]) as agent:
        await agent.run(plan=plan(ASKS), inputs={"who": "ann"}, thread_id="t")
        ended = await agent.cancel("t")
    assert (ended.status, told(ended)) == ("cancelled", [("cancel", "ends", (), "cancelled")])
