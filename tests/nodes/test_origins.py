"""Tests of where a degraded result is told, and of fallbacks that never follow an effect that may have happened."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.fold import RunFold, fold
from nodes.means import next_alternative
from nodes.origins import MOST_ROOTS, age, notes, read_by, roots_among, sentence
from nodes.prompts import quoted
from nodes.step_run import StepRun
from plans.failure import CODES, Failure, ToolFailure
from tests.nodes.model_server import ScriptedModel
from tests.nodes.rows import Row, a_plan, a_step, answered, asked, begun, decided, failed, intended, planned
from tests.running import plan, running, step
from tools.registry import Registry, ToolContext, Toolkit

ONCE = {"max_attempts": 1}
DOWN = ToolFailure("NOT_FOUND", "there is no rate")


def kit_of(seen: list[tuple[str, ...]]) -> Toolkit:
    """A tool that is answered by a mock, and one that keeps the notes it is handed."""
    kit = Toolkit("rates")

    @kit.tool(effect="read", retry=ONCE, fallbacks=[{"mock": {"value": {"rate": 5}}}])
    async def rate() -> dict[str, int]:
        """Today's rate."""
        raise DOWN

    @kit.tool(effect="read", retry=ONCE)
    async def sound() -> dict[str, int]:
        """A rate that is what was asked for."""
        return {"rate": 6}

    @kit.tool(effect="read", retry=ONCE)
    async def write(rate: int, ctx: ToolContext) -> str:
        """Write a report."""
        seen.append(ctx.notes)
        return f"the rate is {rate}"

    return kit


RATE = step("s1", "rate")
TOLD = "answered by a mock and not by rate, because rate failed: there is no rate"


async def test_a_tool_and_a_model_are_told_that_an_input_is_degraded(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """What writes for people is handed the sentence; a model's prompt has it as quoted data, and no such part where
    nothing is degraded."""
    seen: list[tuple[str, ...]] = []
    words = {"id": "s3", "action": "llm", "instruction": "Say ${s1.rate} in words.", "reason": "test"}
    sound = {**words, "id": "s5", "instruction": "Say ${s4.rate} in words."}
    other = step("s2", "write", args={"rate": "${s1.rate}"})
    endpoint.answers("five, if that is right")
    async with running(database_url, tmp_path, [kit_of(seen)], model=endpoint) as agent:
        limits = {"max_local_replans": 0, "max_global_replans": 0}
        result = await agent.run(plan=plan(RATE, other, words, step("s4", "sound"), sound), limits=limits)
    assert (result.status, seen) == ("done", [(f"s1 was {TOLD}",)])
    asked_with, asked_without = (endpoint.prompt(number) for number in (0, 1))
    if "s4.rate" in asked_with:
        asked_with, asked_without = asked_without, asked_with
    assert quoted({"s1": TOLD}) in asked_with
    assert "<degraded>" not in asked_without.partition('<goal>"')[2]
    assert [each.mock for each in result.steps] == [True, True, True, False, False]


async def test_a_planner_is_told_that_a_finished_step_is_degraded(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """A plan that is written anew around a mock knows that it is one."""
    judged = step("s2", "write", args={"rate": "${s1.rate}"}, success_when="@ == 'never'")
    endpoint.answers(json.dumps(plan(step("n1", "sound"))))
    async with running(database_url, tmp_path, [kit_of([])], model=endpoint) as agent:
        result = await agent.run(plan=plan(RATE, judged), limits={"max_local_replans": 0})
    assert (result.status, result.usage.global_replans) == ("done", 1)
    assert json.dumps(TOLD) in endpoint.prompt()


def mocked(unit: str) -> Row:
    """A result that is a mock."""
    output = {"output_ref": "sha256-0", "size": 1, "sha256": "0", "media_type": "application/json"}
    return "outcome", unit, 1, {"output": output, "degraded": f"made up for {unit}", "mock": True, "called": False}


def test_one_that_rests_on_many_names_a_few() -> None:
    """Neither a row nor a sentence grows with the number of its origins."""
    names = [f"s{number}" for number in range(MOST_ROOTS + 5)]
    last = a_step("z", *names, args={"all": " ".join(f"${{{name}}}" for name in names)})
    picture = fold([begun(), planned(a_plan(*map(a_step, names), last)), *map(mocked, names)])
    roots = roots_among(picture, read_by(picture, last, "z"))
    assert len(roots) == MOST_ROOTS
    picture.steps["z"] = StepRun("done", rests_on=roots)
    said = sentence(picture, "z") or ""
    assert said.startswith("made from s0, which was made up for s0; and from s1, which was made up for s1; and from s2")
    assert said.endswith(f"; and from {MOST_ROOTS - 3} more like that")
    assert next(notes(picture)) == "step s0 was made up for s0; z rests on it"


def test_what_is_only_waited_for_degrades_nothing() -> None:
    """An order is no input; a reference is, and so is a condition."""
    steps = [
        a_step("a"),
        a_step("waits", "a"),
        a_step("reads", "a", args={"x": "${a.b}"}),
        a_step("asks", "a", when="a.b"),
    ]
    picture = fold([begun(), planned(a_plan(*steps)), mocked("a")])
    assert [roots_among(picture, read_by(picture, each, each.id)) for each in steps[1:]] == [(), ("a",), ("a",)]


def test_ages_are_told_in_their_largest_unit() -> None:
    """A person reads how old a result is at a glance."""
    told = [age(seconds) for seconds in (0.2, 1, 59.9, 60, 3_599, 7_200, 86_400, 300_000)]
    assert told == [
        "less than a second",
        "1 second",
        "59 seconds",
        "1 minute",
        "59 minutes",
        "2 hours",
        "1 day",
        "3 days",
    ]


@pytest.mark.parametrize("row", [{"tool": "other", "degraded": "answered by other"}], ids=["0.1.0"])
def test_a_fallback_row_of_an_older_version_is_read_as_another_tool(row: dict[str, Any]) -> None:
    """Journals that are in somebody's database go on where they are."""
    picture = fold([begun(), planned(a_plan(a_step("s1"))), failed("s1"), ("fallback", "s1", 1, row)])
    run = picture.run("s1")
    assert (run.tool, run.tried, run.stand_in, run.first_attempt) == ("other", ("other",), None, 2)
    assert run.degraded == "answered by other"


def an_effect() -> Registry:
    """An idempotent tool with two fallbacks."""
    kit = Toolkit("till")
    kit.add(lambda: 1, name="other", effect="idempotent")
    kit.add(lambda: 1, name="send", effect="idempotent", fallbacks=["other", {"code": "NOT_FOUND"}])
    return Registry.of(kit)


EFFECT = an_effect()
EVENTS = ("fails", "fails after it has happened", "is lost", "is lost and may run again", "dies and is sent again")


def played(events: list[str]) -> RunFold:
    """The picture of one effect step that went through these attempts, one after the other."""
    rows: list[Row] = [begun(), planned(a_plan(a_step("c", tool="send")))]
    attempt = 0
    for event in events:
        attempt += 1
        rows.append(intended("c", attempt))
        match event:
            case "fails" | "fails after it has happened":
                rows.append(failed("c", attempt, "NOT_FOUND", happened=event != "fails"))
                rows.append(decided("c", attempt, "retry", "NOT_FOUND"))
            case "is lost":
                rows.append(failed("c", attempt, "UNKNOWN_OUTCOME"))
                rows.append(decided("c", attempt, "retry", "UNKNOWN_OUTCOME"))
            case "is lost and may run again":
                rows.append(failed("c", attempt, "UNKNOWN_OUTCOME"))
                rows.append(decided("c", attempt, "ask", "UNKNOWN_OUTCOME"))
                rows.append(asked("c", "unknown_outcome"))
                settled = {"how": "run", "by": "ann", "why": "it has not happened"}
                rows.append(answered("c", {"type": "approve"}, "unknown_outcome", settlement=settled))
            case "dies and is sent again":
                attempt += 1
                rows.append(intended("c", attempt))
                rows.append(failed("c", attempt, "NOT_FOUND"))
                rows.append(decided("c", attempt, "retry", "NOT_FOUND"))
    return fold(rows)


@given(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=5), st.sampled_from(sorted(CODES)))
def test_nothing_stands_in_for_an_effect_that_may_have_happened(events: list[str], code: str) -> None:
    """Whatever came before and after, and whatever a person or a probe has found out about it since."""
    picture = played(events)
    session: Any = SimpleNamespace(
        fold=picture, engine=SimpleNamespace(registry=EFFECT), step=picture.plan.step if picture.plan else None
    )
    found = next_alternative(session, "c", Failure(code=code, message="no", step_id="c", attempt=9))
    assert found == ("other" if set(events) == {"fails"} else None)
    assert picture.run("c").acted is (set(events) != {"fails"})


def test_what_is_kept_comes_first_where_the_code_asks_for_it_and_only_there() -> None:
    """The action of the table is what decides: use_cache_fallback, whatever the order of the list."""
    kit = Toolkit("k")
    kit.add(lambda: 1, name="other", effect="read")
    fallbacks: list[Any] = ["other", {"cached": 60}, {"code": "TIMEOUT"}]
    kit.add(lambda: 1, name="look", effect="read", fallbacks=fallbacks)
    picture = fold([begun(), planned(a_plan(a_step("s"))), failed("s")])
    session: Any = SimpleNamespace(
        fold=picture,
        engine=SimpleNamespace(registry=Registry.of(kit)),
        step=picture.plan.step if picture.plan else None,
    )
    for code, row in CODES.items():
        expected = "cached result" if row.action == "use_cache_fallback" else "other"
        assert next_alternative(session, "s", Failure(code=code, message="no")) == expected
    picture.steps["s"].tried = ("other", "cached result")
    assert next_alternative(session, "s", Failure(code="BREAKER_OPEN", message="no")) == "code TIMEOUT"
