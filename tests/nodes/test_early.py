"""Reads that begin while the planner still writes: only what may, only once, and nothing of it before the plan."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from werkzeug import Response

from graph.result import RunResult
from nodes.model_modes import MODES, Mode
from tests.nodes.model_server import Question, ScriptedModel, delta
from tests.running import plan, running, step
from tools.registry import Toolkit

LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}


class Shop:
    """Lookups and a letter; how often each was called, and with what, in their order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.found = asyncio.Event()
        self.fails = 0
        self.endless: str | None = None
        self.kit = Toolkit("shop")

        @self.kit.tool(effect="read", breaker=LENIENT, retry={"max_attempts": 1}, repeats=None)
        async def look(key: str) -> dict[str, str]:
            """Look something up."""
            self.calls.append(("look", key))
            self.found.set()
            if key == self.endless:
                await asyncio.sleep(20)
            if self.fails:
                self.fails -= 1
                raise ConnectionError
            return {"key": f"{key}!", "nth": str(len(self.calls))}

        @self.kit.tool(effect="read", risk="high")
        async def peep(key: str) -> str:
            """Look where not everybody may."""
            self.calls.append(("peep", key))
            return key

        @self.kit.tool(effect="irreversible", risk="low")
        async def send(text: str) -> str:
            """Send a letter."""
            self.calls.append(("send", text))
            return text

    @property
    def counted(self) -> dict[str, int]:
        """How often each tool was called."""
        return dict(Counter(tool for tool, _ in self.calls))


class Writing:
    """A planner's answer in two parts: the second comes when it is let go."""

    def __init__(self, first: str, rest: str = "", mode: Mode = "json_schema", *, ends: bool = True) -> None:
        self.parts, self.mode, self.ends = (first, rest), mode, ends
        self.go_on = Event()

    def __call__(self, _: Question) -> Response:
        return Response(self._events(), content_type="text/event-stream")

    def _events(self) -> Iterator[str]:
        yield self._chunk(self.parts[0], begins=True)
        self.go_on.wait(10)
        yield self._chunk(self.parts[1])
        if self.ends:
            yield f"data: {json.dumps(delta(finish_reason='stop'))}\n\ndata: [DONE]\n\n"

    def _chunk(self, text: str, *, begins: bool = False) -> str:
        if self.mode != "tools":
            return f"data: {json.dumps(delta(text))}\n\n"
        call: dict[str, Any] = {"index": 0, "function": {"arguments": text}}
        if begins:
            call |= {"id": "c", "type": "function", "function": {"name": "answer", "arguments": text}}
        return f"data: {json.dumps(delta(calls=[call]))}\n\n"


def parts(whole: dict[str, Any], shown: int) -> tuple[str, str]:
    """A plan's text, cut behind so many steps."""
    text = json.dumps(whole)
    place = text.index(json.dumps(whole["steps"][shown - 1])) + len(json.dumps(whole["steps"][shown - 1]))
    return text[:place], text[place:]


INPUTS = {"x": True, "keys": ["k"]}
LOOKS = plan(
    step("s1", "look", args={"key": "a"}),
    step("s2", "look", args={"key": "${s1.key}"}),
    step("s3", "look", args={"key": "c"}),
    answer="${s1.nth} ${s2.key} ${s3.key}",
)


class Drive:
    """One run whose planner is held in the middle of its plan until `before` is true of the shop."""

    def __init__(self, database_url: str, folder: Path, endpoint: ScriptedModel) -> None:
        self.place, self.endpoint, self.shop = (database_url, folder), endpoint, Shop()

    async def ends(self, *writings: Writing, early: int, **more: Any) -> RunResult:
        """How the run ends; `early` is how many calls are made before the rest of the first plan comes."""
        self.endpoint.answers(*writings)
        settings = {"eager": True, "structured_output": writings[0].mode, **more}
        async with running(*self.place, [self.shop.kit], model=self.endpoint, **settings) as agent:
            drive = asyncio.create_task(agent.run("look around", inputs=INPUTS, thread_id="t", on_event=self._take))
            await self._wait_for(early)
            self.seen_early = list(self.shop.calls)
            for writing in writings:
                writing.go_on.set()
            result = await drive
            self.rows = await agent.engine.database.fetch("SELECT kind, step_id FROM surestep.journal ORDER BY n")
            return result

    async def _wait_for(self, early: int) -> None:
        async with asyncio.timeout(10):
            while len(self.shop.calls) < early or not self.endpoint.questions:  # noqa: ASYNC110 (a foreign thread's)
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)

    def _take(self, event: Any) -> None:
        self.notices = [*getattr(self, "notices", []), *([event.message] if event.kind == "notice" else [])]

    def kinds(self, *wanted: str) -> list[str]:
        """The journal's rows of these kinds, in order."""
        return [f"{row['kind']} {row['step_id'] or ''}".strip() for row in self.rows if row["kind"] in wanted]


@pytest.fixture
def drive(database_url: str, tmp_path: Path, endpoint: ScriptedModel) -> Drive:
    """A run to be held in the middle of its plan."""
    return Drive(database_url, tmp_path, endpoint)


@pytest.mark.parametrize("mode", MODES)
async def test_reads_of_a_valid_beginning_run_before_the_plan_is_whole_and_not_again(drive: Drive, mode: Mode) -> None:
    """Two of three lookups, the second from the first's result, are made while the planner still writes; their results
    are those of the steps, whose rows come after the plan's; each call counts once."""
    result = await drive.ends(Writing(*parts(LOOKS, 2), mode), early=2)
    assert (result.status, result.answer) == ("done", "1 a!! c!")
    assert drive.seen_early == [("look", "a"), ("look", "a!")]
    assert drive.shop.counted == {"look": 3}
    assert (result.usage.attempts, result.usage.steps) == (3, 3)
    assert sorted(drive.kinds("early")) == ["early s1", "early s2", "early s3"]
    assert drive.kinds("plan", "outcome")[0] == "plan"


async def test_nothing_begins_early_unless_it_is_asked_for(drive: Drive) -> None:
    """The default waits for the whole plan."""
    result = await drive.ends(Writing(*parts(LOOKS, 2)), early=0, eager=False)
    assert (result.status, drive.seen_early, result.usage.attempts) == ("done", [], 3)
    assert drive.kinds("early") == []


KEPT_BACK = (
    step("effect", "send", args={"text": "x"}),
    step("high", "peep", args={"key": "x"}),
    step("asks", "look", args={"key": "x"}, require_approval=True),
    step("raised", "look", args={"key": "x"}, risk="high"),
    step("when", "look", args={"key": "x"}, when="inputs.x"),
    step("requires", "look", args={"key": "x"}, requires="inputs.x"),
    step("each", "look", args={"key": "${item}"}, for_each="${inputs.keys}"),
    {"id": "llm", "action": "llm", "instruction": "think", "reason": "test"},
)
"""Steps that do not begin early: effects, what somebody may be asked about, what may not run at all or not just once,
and judgements."""


async def test_what_may_not_begin_early_does_not_nor_what_rests_on_it(drive: Drive) -> None:
    """Only an unconditional read that nobody has to be asked about begins; what depends on another step waits."""
    after = [step(f"after_{each['id']}", "look", each["id"], args={"key": "b"}) for each in KEPT_BACK]
    whole = plan(*KEPT_BACK, *after, step("free", "look", args={"key": "c"}))
    await drive.ends(Writing(*parts(whole, len(whole["steps"])), "text"), early=1)
    assert drive.seen_early == [("look", "c")]


async def test_a_beginning_with_a_fault_begins_nothing(drive: Drive) -> None:
    """Wrong arguments, no such tool, a step or an input that is not there: what follows is not begun either."""
    faulty = (
        step("s1", "look", args={"key": 5}),
        step("s1", "nowhere", args={}),
        step("s1", "look", args={"key": "${s9.x}"}),
    )
    plans = [plan(first, step("s2", "look", args={"key": "b"})) for first in faulty]
    result = await drive.ends(*(Writing(*parts(each, 2), "text") for each in plans), early=0, on_unplannable="refuse")
    assert (result.status, drive.shop.calls) == ("failed", [])
    assert drive.kinds("early") == []


async def test_prose_before_a_plan_keeps_its_reads_back(drive: Drive) -> None:
    """A text that is not surely the plan begins nothing, and is read as ever when it is whole."""
    first, rest = parts(LOOKS, 2)
    result = await drive.ends(Writing(f"Here you are: {first}", rest, "text"), early=0)
    assert (result.status, drive.seen_early, drive.shop.counted) == ("done", [], {"look": 3})


async def test_what_the_plan_does_not_have_so_is_thrown_away_and_counted(drive: Drive) -> None:
    """The first plan is refused for a fault in its end; the next one shares a step's id and not its arguments. What was
    read for the first is not used, is told, and counts."""
    faulty = plan(step("s1", "look", args={"key": "a"}), step("s2", "nowhere", args={}))
    other = Writing(*parts(plan(step("s1", "look", args={"key": "b"}), answer="${s1.key}"), 1), "text")
    result = await drive.ends(Writing(*parts(faulty, 1), "text"), other, early=1)
    assert (result.status, result.answer) == ("done", "b!")
    assert drive.shop.calls == [("look", "a"), ("look", "b")]
    assert result.usage.attempts == 2
    assert any("not used" in notice and "s1" in notice for notice in drive.notices)


async def test_a_plan_that_breaks_off_leaves_nothing_but_counted_calls(drive: Drive) -> None:
    """The stream ends without an end, the question is asked again, and the model writes another plan."""
    other = Writing(*parts(plan(step("s1", "look", args={"key": "z"}), answer="${s1.key}"), 1), "text")
    result = await drive.ends(Writing(parts(LOOKS, 1)[0], "", "text", ends=False), other, early=1)
    assert (result.status, result.answer, result.usage.attempts) == ("done", "z!", 2)
    assert drive.shop.calls == [("look", "a"), ("look", "z")]
    assert drive.kinds("outcome") == ["outcome s1"]


async def test_the_same_plan_after_a_break_uses_what_was_read(drive: Drive) -> None:
    """A step that stands there again as it was is not read again."""
    result = await drive.ends(
        Writing(parts(LOOKS, 1)[0], "", "text", ends=False), Writing(*parts(LOOKS, 3), "text"), early=1
    )
    assert (result.status, result.answer, drive.shop.counted) == ("done", "1 a!! c!", {"look": 3})
    assert result.usage.attempts == 3


async def test_a_result_is_not_used_for_other_arguments(drive: Drive) -> None:
    """The stream broke, and the plan now has another first step: the second, written as before, reads another key."""
    other = plan(step("s1", "look", args={"key": "z"}), LOOKS["steps"][1], answer="${s2.key}")
    broken = Writing(parts(LOOKS, 2)[0], "", "text", ends=False)
    result = await drive.ends(broken, Writing(*parts(other, 2), "text"), early=2)
    assert (result.status, result.answer) == ("done", "z!!")
    assert drive.shop.calls == [("look", "a"), ("look", "a!"), ("look", "z"), ("look", "z!")]


async def test_a_read_that_fails_early_is_made_again_by_its_step(drive: Drive) -> None:
    """A failure is nobody's outcome before there is a plan; the step has all its attempts."""
    drive.shop.fails = 1
    result = await drive.ends(Writing(*parts(LOOKS, 1)), early=1)
    assert (result.status, result.usage.attempts) == ("done", 4)
    assert [call for call in drive.shop.calls if call[1] == "a"] == [("look", "a")] * 2
    assert drive.kinds("outcome").count("outcome s1") == 1


async def test_a_criterion_that_is_false_early_starts_nothing_and_is_judged_again(drive: Drive) -> None:
    """What its own criterion refuses is no result to build on."""
    judged = step("s1", "look", args={"key": "a"}, success_when="nth == '2'")
    whole = plan(judged, step("s2", "look", args={"key": "${s1.key}"}), answer="${s2.key}")
    result = await drive.ends(Writing(*parts(whole, 2), "text"), early=1)
    assert (result.status, result.answer, drive.seen_early) == ("done", "a!!", [("look", "a")])


async def test_a_cancelled_run_keeps_no_early_read(drive: Drive, endpoint: ScriptedModel) -> None:
    """Ended while the planner writes, nothing runs on, and nothing of a step is in the journal."""
    drive.shop.endless = "a"
    writing = Writing(*parts(LOOKS, 2))
    endpoint.answers(writing)
    async with running(*drive.place, [drive.shop.kit], model=endpoint, eager=True) as agent:
        run = asyncio.create_task(agent.run("look around", thread_id="t"))
        await asyncio.wait_for(drive.shop.found.wait(), 10)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        writing.go_on.set()
        rows = await agent.engine.database.fetch("SELECT kind FROM surestep.journal")
    assert "early" in {row["kind"] for row in rows}
    assert not {"plan", "outcome"} & {row["kind"] for row in rows}
    assert not [task for task in asyncio.all_tasks() if task.get_name().endswith("early")]
