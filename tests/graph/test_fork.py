"""A fork is a new run from a step of another: what had finished is not called again, no effect is repeated unasked."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from checkpoints.queries import QUERIES
from graph.gateway import Agent
from graph.result import RunResult
from nodes.beginning import new_head
from nodes.requests import run_record
from plans.decisions import Approve, Reject, Respond
from plans.errors import ArtifactMissing, InvalidInput, RunBusy, UnknownThread, UsageError
from plans.failure import ToolFailure
from tests.graph.conftest import OpenAgent
from tests.graph.kits import plan, step
from tests.graph.program import Project, Run
from tools.registry import ToolContext, Toolkit

ONCE: dict[str, Any] = {
    "retry": {"max_attempts": 1},
    "breaker": {"window": 1_000, "in_a_row": 1_000, "min_calls": 1_000},
    "output_trust": "trusted",
}
FAR = "x" * 40_000
"""A result too large for the database: it is kept in a file."""


class World:
    """Tools of all four effects; which steps called them, with which keys; and which are to fail or to hang."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.keys: list[str] = []
        self.failing: set[str] = set()
        self.lost: set[str] = set()
        self.kit = Toolkit("world")
        self.kit.tool(effect="read", **ONCE)(self._look())
        self.kit.tool(effect="idempotent", **ONCE)(self._act("charge"))
        self.kit.tool(effect="irreversible", **ONCE)(self._act("send"))
        self.kit.tool(effect="transactional", **ONCE)(self._book())

    def take(self, ctx: ToolContext) -> None:
        """Note the call; fail, or let its outcome be lost, if that is to be."""
        self.calls[ctx.step_id] += 1
        self.keys.append(ctx.idempotency_key)
        if ctx.step_id in self.lost:
            raise ToolFailure("UNKNOWN_OUTCOME", "the answer was lost")
        if ctx.step_id in self.failing:
            raise ToolFailure("NOT_FOUND", "there is none")

    def _look(self) -> Any:
        async def look(what: Any, ctx: ToolContext) -> dict[str, Any]:
            """Look something up."""
            self.take(ctx)
            return {"found": what}

        return look

    def _act(self, name: str) -> Any:
        async def act(to: Any, ctx: ToolContext) -> dict[str, Any]:
            """Change the world."""
            self.take(ctx)
            return {"to": to}

        act.__name__ = name
        return act

    def _book(self) -> Any:
        async def book(to: Any, ctx: ToolContext) -> dict[str, Any]:
            """Book it in Surestep's own database."""
            self.take(ctx)
            await ctx.connection.execute("INSERT INTO bookings VALUES (%s)", (str(to),))
            return {"to": to}

        return book


@pytest.fixture
def world() -> World:
    """Tools that count."""
    return World()


@pytest.fixture
async def agent(agent_on: OpenAgent, world: World) -> Agent:
    """An agent in that world."""
    opened: Agent = await agent_on([world.kit])
    await opened.engine.database.execute("CREATE TABLE bookings (name text)")
    return opened


ALL_FOUR = plan(
    step("a", "look", args={"what": "ann"}),
    step("b", "charge", args={"to": "${a.found}"}),
    step("c", "book", args={"to": "${b.to}"}),
    step("d", "send", args={"to": "${c.to}"}),
    step("e", "look", args={"what": FAR}),
    step("f", "look", "d", args={"what": "${e.found}"}),
    answer="sent to ${d.to}",
)


def asked(result: RunResult) -> list[str]:
    """Which steps wait for a person."""
    return [request.step_id for request in result.approvals]


async def approved(agent: Agent, result: RunResult) -> RunResult:
    """The run after a yes to everything that waits."""
    return await agent.resume(result.thread_id, decisions={each.approval_id: Approve() for each in result.approvals})


async def parent(agent: Agent, written: dict[str, Any] = ALL_FOUR, **more: Any) -> RunResult:
    """A run on thread "t"."""
    return await agent.run(plan=written, thread_id="t", **more)


@pytest.mark.parametrize(
    ("step_id", "again", "effects"),
    [("a", "abcdf", "bcd"), ("b", "bcdf", "bcd"), ("d", "df", "d"), ("e", "ef", ""), ("f", "f", "")],
)
async def test_a_fork_runs_the_step_and_what_depends_on_it_and_nothing_else(
    agent: Agent, world: World, step_id: str, again: str, effects: str
) -> None:
    """From the first, a middle and the last step: kept results are not made again, and each effect asks first."""
    await parent(agent)
    before = dict(world.calls)
    result = await agent.fork("t", step_id, new_thread_id="new")
    for effect in effects:
        assert (result.status, asked(result), world.calls[effect]) == ("paused", [effect], before[effect])
        assert f"it would repeat what step {effect} of " in result.approvals[0].reason
        result = await approved(agent, result)
    assert (result.status, result.answer, result.thread_id) == ("done", "sent to ann", "new")
    assert {unit for unit in world.calls if world.calls[unit] > before[unit]} == set(again)
    acted = [key for key in world.keys if world.keys.count(key) > 1]
    assert acted == [], "a new run has new keys"


async def test_kept_results_are_the_forks_own(agent: Agent) -> None:
    """By reference: the same output_ref, small body or file, is readable under the fork's run after the parent's is
    gone; and the archive sees that a file is still referred to."""
    old = await parent(agent)
    new = await agent.fork("t", "f", new_thread_id="new")
    assert [each.output_ref for each in new.steps[:5]] == [each.output_ref for each in old.steps[:5]]
    database = agent.engine.database
    query = "SELECT DISTINCT location FROM surestep.artifacts WHERE run_id = %s AND location IS NOT NULL"
    large = (await database.fetch(query, (new.run_id,)))[0]
    await database.execute("DELETE FROM surestep.runs WHERE run_id = %s", (old.run_id,))
    assert (await database.fetch(QUERIES["use_of_file"], large))[0]["referred"]
    for each in new.steps:
        assert await agent.output("new", each.output_ref or "")


async def test_a_fork_of_a_failed_run_goes_on_from_what_had_finished(agent: Agent, world: World) -> None:
    """It failed in the middle: the failed step runs again, with another run's key; its effect was none, so nobody is
    asked about it."""
    world.failing = {"d"}
    assert (await parent(agent)).status == "failed"
    world.failing = set()
    before = dict(world.calls)
    result = await agent.fork("t", "d")
    assert (result.status, result.answer) == ("done", "sent to ann")
    assert {unit for unit in world.calls if world.calls[unit] > before.get(unit, 0)} == {"d", "f"}
    assert result.usage.steps == 2
    assert (await agent.show("t")).status == "failed"


async def test_an_open_failure_above_the_step_runs_again(agent: Agent, world: World) -> None:
    """What the fork's step needs and the parent never had is not left out."""
    world.failing = {"d"}
    await parent(agent)
    world.failing = set()
    assert (await agent.fork("t", "f")).status == "done"


@pytest.mark.parametrize("tool", ["charge", "send"])
@pytest.mark.parametrize("step_id", ["a", "b", "c"])
async def test_an_unknown_outcome_stays_one(agent: Agent, world: World, tool: str, step_id: str) -> None:
    """From above, at and below it: the step is frozen with its stored key and arguments, a person is asked whether it
    has happened, and neither a rule nor a key answers for them."""
    world.lost = {"b"}
    written = plan(
        step("a", "look", args={"what": "ann"}),
        step("b", tool, args={"to": "${a.found}"}),
        step("c", "look", args={"what": "${b.to}"}),
        answer="${c.found}",
    )
    paused = await parent(agent, written, limits={"max_attempts": 1})
    assert [each.kind for each in paused.approvals] == ["unknown_outcome"]
    world.lost = set()
    calls = world.calls["b"]
    result = await agent.fork("t", step_id, new_thread_id="new", approve="all", limits={"max_attempts": 3})
    assert (result.status, [each.kind for each in result.approvals]) == ("paused", ["unknown_outcome"])
    assert (result.approvals[0].args, world.calls["b"]) == ({"to": "ann"}, calls)
    key = world.keys[-1] if step_id != "a" else world.keys[-2]
    done = await approved(agent, result)
    assert (done.status, done.answer, world.calls["b"]) == ("done", "ann", calls + 1)
    assert world.keys.count(key) >= 2, "sent with the parent's key"


@pytest.mark.parametrize("tool", ["charge", "send", "book"])
async def test_what_a_killed_worker_had_begun_is_asked_about(agent: Agent, world: World, tool: str) -> None:
    """Its intent is the last that is known, and nobody has gone on with the run: no effect is sent again unasked, not
    even with its key, and the transactional one is no exception."""
    await parent(agent, plan(step("a", "look", args={"what": 1}), step("b", tool, args={"to": "${a.found}"})))
    (intent,) = await agent.engine.database.fetch("SELECT fence, n FROM surestep.journal WHERE kind = 'intent'")
    await agent.engine.database.execute("DELETE FROM surestep.journal WHERE (fence, n) > (%(fence)s, %(n)s)", intent)
    await agent.engine.database.execute("UPDATE surestep.runs SET status = 'running', ended_at = NULL")
    result = await agent.fork("t", "a", new_thread_id="new", approve="all")
    assert (asked(result), result.approvals[0].kind, world.calls["b"]) == (["b"], "unknown_outcome", 1)
    done = await agent.resume("new", decisions={result.approvals[0].approval_id: Reject(message="leave it")})
    assert (done.status, done.steps[1].status, world.calls["b"]) == ("done", "skipped", 1)


async def test_a_question_about_doubt_waits_for_nothing(agent: Agent, world: World) -> None:
    """Not even for a step above it, which runs again and asks too: its arguments are stored."""
    world.lost = {"b"}
    await parent(agent, plan(step("a", "send", args={"to": 1}), step("b", "send", args={"to": "${a.to} and 2"})))
    assert sorted(asked(await agent.fork("t", "a"))) == ["a", "b"]


async def test_an_unknown_outcome_that_has_happened_is_a_result(agent: Agent, world: World) -> None:
    """What the person says it gave is used, and the parent still has its own question."""
    world.lost = {"b"}
    await parent(agent, plan(step("b", "send", args={"to": "ann"}), step("c", "look", args={"what": "${b.to}"})))
    result = await agent.fork("t", "c", new_thread_id="new")
    result = await agent.resume("new", decisions={result.approvals[0].approval_id: Respond(message='{"to": "ann"}')})
    assert (result.status, world.calls) == ("done", {"b": 1, "c": 1})
    assert asked(await agent.show("t")) == ["b"]


async def test_a_probe_is_asked_and_its_yes_is_a_result(agent_on: OpenAgent) -> None:
    """Of an effect in doubt that can be probed; its no still asks a person, for the parent may do it too."""
    sent: list[str] = []

    def probe(key: str) -> str | None:
        return "sent" if sent else None

    kit = Toolkit("probed")

    @kit.tool(effect="irreversible", probe=probe, **ONCE)
    async def send() -> str:
        """Its answer is always lost."""
        raise ToolFailure("UNKNOWN_OUTCOME", "the answer was lost")

    agent: Agent = await agent_on([kit])
    await agent.run(plan=plan(step("a", "send")), thread_id="t")
    no = await agent.fork("t", "a")
    assert (asked(no), no.approvals[0].kind) == (["a"], "unknown_outcome")
    assert "its tool says that it has not" in no.approvals[0].reason
    sent.append("it")
    assert (await agent.fork("t", "a")).status == "done"


async def test_a_changed_call_of_the_same_step_asks_too(agent_on: OpenAgent, world: World) -> None:
    """The step above gives another value now: the same step with other arguments is still its second effect."""
    values = iter(["ann", "bob"])
    kit = Toolkit("changing")

    @kit.tool(effect="read", output_trust="trusted")
    async def current() -> str:
        """Another each time."""
        return next(values)

    agent: Agent = await agent_on([world.kit, kit])
    await parent(agent, plan(step("a", "current"), step("b", "send", args={"to": "${a}"})))
    result = await agent.fork("t", "a")
    assert (asked(result), result.approvals[0].args) == (["b"], {"to": "bob"})
    assert result.approvals[0].reason == "it would repeat what step b of the run that this one was forked from has done"
    assert asked(await agent.fork(result.thread_id, "b")) == ["b"], "nobody has agreed yet, two runs away either"
    assert world.calls == {"b": 1}


async def test_a_new_step_cannot_repeat_what_the_parent_did(agent: Agent, world: World) -> None:
    """The parent's effects are known by name: another step with the same call asks."""
    written = plan(
        step("a", "send", args={"to": "ann"}),
        step("b", "send", args={"to": "${inputs.to}"}, when="a.to == 'nobody'"),
    )
    await parent(agent, written, inputs={"to": "ann"})
    result = await agent.fork("t", "b", new_thread_id="new")
    assert (result.status, world.calls) == ("done", {"a": 1})
    picture = await agent._driver.picture(result.run_id)
    (units,) = picture.effects.values()
    assert units == (f"a of run {(await agent.show('t')).run_id}",)


async def test_a_rejected_call_stays_rejected(agent: Agent, world: World) -> None:
    """A fork is no way around a person's no."""
    written = plan(step("a", "look", args={"what": 1}), step("b", "send", args={"to": "ann"}, require_approval=True))
    paused = await parent(agent, written)
    await agent.resume("t", decisions={paused.approvals[0].approval_id: Reject(message="not to her")})
    result = await agent.fork("t", "b", approve="all")
    assert (result.status, result.failures[0].code, world.calls["b"]) == ("failed", "REJECTED", 0)


async def test_approve_all_answers_what_is_asked_about_repetition(agent: Agent, world: World) -> None:
    """Somebody has said yes to all risks beforehand, and none may be told no."""
    await parent(agent)
    assert (await agent.fork("t", "b", approve="all")).status == "done"
    assert [world.calls[unit] for unit in "abcd"] == [1, 2, 2, 2]
    refused = await agent.fork("t", "b", approve="none")
    assert (refused.status, refused.failures[0].code, world.calls["b"]) == ("failed", "REJECTED", 2)


EACH = plan(
    step("list", "look", args={"what": [1, 2, 3]}),
    step("each", "send", args={"to": "${item}"}, for_each="${list.found}"),
    step("sum", "look", args={"what": "${each[*].to}"}),
    answer="${sum.found}",
)


async def test_a_fork_below_a_list_keeps_all_its_elements(agent: Agent, world: World) -> None:
    """Their results can be read in the fork, each by itself."""
    await parent(agent, EACH)
    result = await agent.fork("t", "sum")
    assert (result.status, result.answer, world.calls["sum"]) == ("done", "[1, 2, 3]", 2)
    assert [world.calls[f"each[{index}]"] for index in range(3)] == [1, 1, 1]
    children = result.steps[1].children
    assert [await agent.output(result.thread_id, child.output_ref or "") for child in children] == [
        b'{"to":1}', b'{"to":2}', b'{"to":3}'
    ]  # fmt: skip


async def test_a_fork_from_a_list_asks_for_every_element(agent: Agent, world: World) -> None:
    """Each of them had its effect."""
    await parent(agent, EACH)
    result = await agent.fork("t", "each")
    assert sorted(asked(result)) == ["each[0]", "each[1]", "each[2]"]
    done = await approved(agent, result)
    assert (done.status, done.answer) == ("done", "[1, 2, 3]")


async def test_elements_that_had_ended_are_kept_where_their_list_is(agent: Agent, world: World) -> None:
    """One element failed and the run with it: only that one runs in the fork."""
    world.failing = {"each[1]"}
    assert (await parent(agent, EACH)).status == "failed"
    world.failing = set()
    result = await agent.fork("t", "sum")
    assert (result.status, result.answer) == ("done", "[1, 2, 3]")
    assert [world.calls[f"each[{index}]"] for index in range(3)] == [1, 2, 1]


async def test_an_element_in_doubt_is_kept_or_the_fork_refused(agent: Agent, world: World) -> None:
    """Where the list stays the element is frozen; where it would be made anew it could be another's, so that is
    refused."""
    world.lost = {"each[1]"}
    await parent(agent, EACH)
    world.lost = set()
    with pytest.raises(InvalidInput, match=r"whether each\[1\] has happened is not known"):
        await agent.fork("t", "list")
    below = await agent.fork("t", "sum")
    assert (asked(below), below.approvals[0].kind) == (["each[1]"], "unknown_outcome")
    at = await agent.fork("t", "each")
    assert sorted(asked(at)) == ["each[0]", "each[1]", "each[2]"]
    assert [world.calls[f"each[{index}]"] for index in range(3)] == [1, 1, 1]


async def test_a_failure_that_was_gone_on_without_stays_one(agent: Agent, world: World) -> None:
    """What a kept step was told was missing is not made after all."""
    world.failing = {"a"}
    written = plan(
        step("a", "look", args={"what": 1}),
        step("b", "look", "a", args={"what": 2}, on_dependency_failure="degrade"),
        step("c", "look", "b", args={"what": 3}),
    )
    assert (await parent(agent, written)).status == "done"
    calls = world.calls["a"]
    result = await agent.fork("t", "c")
    assert (result.status, world.calls["a"], result.steps[0].status) == ("done", calls, "failed")
    assert result.steps[1].degraded == "run without the result of a"


async def test_a_fork_can_be_forked(agent: Agent, world: World) -> None:
    """Results, effects and the way back are handed on; the reason names the run that acted first."""
    first = await parent(agent)
    second = await agent.fork("t", "f", new_thread_id="u")
    third = await agent.fork("u", "d", new_thread_id="v")
    assert asked(third) == ["d"]
    assert f"step d of run {first.run_id}" in third.approvals[0].reason
    assert third.forked is not None
    assert (third.forked.run_id, third.forked.step_id, len(third.forked.folders)) == (second.run_id, "d", 2)
    assert (await approved(agent, third)).status == "done"
    assert [world.calls[unit] for unit in "abcdef"] == [1, 1, 1, 2, 1, 3]


async def test_the_same_request_twice_is_one_fork(agent: Agent, world: World) -> None:
    """At once or later; the id for anything else is refused."""
    await parent(agent)
    both = await asyncio.gather(
        agent.fork("t", "f", request_id="q"), agent.fork("t", "f", request_id="q"), return_exceptions=True
    )
    made = [each for each in both if isinstance(each, RunResult)]
    assert all(isinstance(each, RunResult | RunBusy) for each in both)
    again = await agent.fork("t", "f", request_id="q")
    assert {each.run_id for each in made} == {again.run_id}
    assert world.calls["f"] == 2
    with pytest.raises(UsageError, match="the request 'q' was already made"):
        await agent.fork("t", "e", request_id="q")


async def test_what_cannot_be_forked_is_refused_and_nothing_is_stored(agent: Agent, tmp_path: Path) -> None:
    """An unknown thread, step or element; a run without a plan; a thread that is busy; a result that is gone."""
    with pytest.raises(UnknownThread):
        await agent.fork("nope", "a")
    await parent(agent, EACH)
    with pytest.raises(InvalidInput, match="no step 'z'; its steps: list, each, sum"):
        await agent.fork("t", "z")
    with pytest.raises(InvalidInput, match=r"each\[1\] is one element of step each; fork from each"):
        await agent.fork("t", "each[1]")
    head = new_head(output=tmp_path, thread_id="unplanned", request_id="q", goal="nobody has begun this")
    await agent.engine.runs.create(run_record(head))
    with pytest.raises(InvalidInput, match="no plan yet"):
        await agent.fork("unplanned", "a")
    await agent.run(plan=plan(step("a", "send", args={"to": 1}, require_approval=True)), thread_id="open")
    with pytest.raises(UsageError, match="'open' has a run that is not finished"):
        await agent.fork("t", "sum", new_thread_id="open")
    await agent.engine.database.execute("DELETE FROM surestep.artifacts")
    with pytest.raises(ArtifactMissing, match="has lost results"):
        await agent.fork("t", "sum")
    assert len(await agent.runs()) == 3


async def test_a_run_that_is_driven_cannot_be_forked(agent_on: OpenAgent) -> None:
    """Its end is not known yet; when it is, the fork is made."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    kit = Toolkit("slow")

    @kit.tool(effect="read")
    async def wait() -> str:
        """Until it is let."""
        begun.set()
        await may_end.wait()
        return "waited"

    there, here = await agent_on([kit]), await agent_on([kit])
    running = asyncio.create_task(there.run(plan=plan(step("a", "wait")), thread_id="t"))
    await begun.wait()
    with pytest.raises(RunBusy, match="forked when nobody drives it"):
        await here.fork("t", "a")
    may_end.set()
    await running
    assert (await here.fork("t", "a")).status == "done"


async def test_a_changed_input_file_is_noticed(agent: Agent, tmp_path: Path) -> None:
    """What is kept was read from the file as it was: the premise of the rest is gone."""
    file = tmp_path / "orders.csv"
    file.write_text("a\n1\n")
    written = plan(step("a", "look", args={"what": "${inputs.orders}"}), step("b", "look", "a", args={"what": 2}))
    await parent(agent, written, inputs={"orders": file})
    assert (await agent.fork("t", "b")).status == "done"
    file.write_text("a\n2\n")
    changed = await agent.fork("t", "b")
    assert (changed.status, changed.failures[0].code) == ("failed", "INPUT_CHANGED")
    assert (await agent.fork(changed.thread_id, "b")).failures[0].code == "INPUT_CHANGED"


async def test_files_of_the_parent_can_be_read_and_are_not_written(agent_on: OpenAgent) -> None:
    """What a kept step has written is found under its name; what the fork writes goes into a folder of its own."""
    kit = Toolkit("files")

    @kit.tool(effect="read")
    def write(name: str, ctx: ToolContext) -> dict[str, str]:
        """Write a page that says whose it is."""
        ctx.files.writable(name).write_text(ctx.run_id)
        return {"report_html": name}

    @kit.tool(effect="read")
    def read(name: str, ctx: ToolContext) -> str:
        """Read it."""
        return ctx.files.readable(name).read_text()

    agent: Agent = await agent_on([kit])
    written = plan(
        step("a", "write", args={"name": "a.html"}),
        step("b", "read", args={"name": "${a.report_html}"}),
        step("c", "write", args={"name": "c.html"}),
        answer="${b}",
    )
    old = await agent.run(plan=written, thread_id="t")
    assert old.report_ref is not None
    below = await agent.fork("t", "b", new_thread_id="u")
    assert (below.status, below.answer, below.report_ref) == ("done", old.run_id, old.report_ref)
    beside = await agent.fork("u", "c")
    assert (beside.answer, beside.report_ref) == (old.run_id, old.report_ref.replace(old.run_id, beside.run_id))
    assert await asyncio.to_thread(Path(old.report_ref).read_text) == old.run_id


def test_the_command_forks_shows_where_from_and_ends_like_a_run(project: Project, surestep: Run) -> None:
    """Exit 3 while a person is asked, 0 at its end; `show` names thread and step; a missing step is one sentence."""
    kit = ("--toolkit", "mykit:kit")
    first, second = (
        step("s1", "double", args={"number": 4}),
        step("s2", "send", args={"to": "ann", "text": "is ${s1.number}"}),
    )
    project.write("p.json", plan(first, second))
    assert surestep("run", "--plan", "p.json", *kit, "--thread", "t").code == 0
    paused = surestep("fork", "t", "--from", "s2", "--thread", "new", *kit, "--json")
    assert (paused.code, [each["step_id"] for each in paused.json["approvals"]]) == (3, ["s2"])
    assert paused.json["forked"]["step_id"] == "s2"
    assert "forked from thread t at step s2" in surestep("show", "new").out
    assert surestep("approve", "new", "s2", *kit).code == 0
    assert project.calls() == ["double 4", "send ann", "send ann"]
    again = surestep("fork", "t", "--from", "s2", *kit, "--approve", "all", "--json")
    assert (again.code, len(project.calls())) == (0, 4)
    surestep("fork", "t", "--from", "s9", *kit).refuses("no step 's9'; its steps: s1, s2")
