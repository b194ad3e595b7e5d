"""Property: whatever goes wrong, an effect is never called again while nobody knows what its last call has done."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nodes import schemas
from plans.failure import ToolFailure
from tests.simulation.memory_engine import open_memory_engine
from tests.simulation.plot import TIMEOUT_S, Plot
from tests.simulation.story import Process, Story, _same_every_time
from tests.simulation.toolkit import NEVER_OPEN, ONCE, _probe, stage
from tests.simulation.world import EFFECTS, Call, World
from tools import isolation
from tools.context import ToolContext
from tools.delivery import Ended
from tools.registry import Registry, Toolkit

TURNS = ("ok", "refused", "never", "broken", "hang", "lost", "late", "late_refused", "late_broken")
"""How a call goes: well; refused for now, or for good, and nothing has happened; cut off after it has happened; no
answer, and nothing has happened; no answer, and it has; it has happened, and the answer comes late; a refusal that
comes late; it has happened, and that it was cut off comes late."""
LATE_S = (0.5, 3.0, 12.0)
"""How long after its deadline a late answer comes."""


@dataclass
class Watch:
    """What was called, and what the journal has said since. `told` counts what has happened."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    calls: dict[str, tuple[str, int]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)

    def row(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if row["kind"] == "late":
            self.told["late and settled" if row["body"].get("settles") else "late and noted"] += 1

    def begins(self, world: World, call: Call) -> None:
        """Between two calls of an effect stands a word about the first: its outcome, a probe's, a person's, or its own
        late answer's. One that honours its key may be sent again under it: the other side takes it for one."""
        before = self.calls.get(call.unit)
        self.calls[call.unit] = (call.key, len(self.rows))
        if before is None or call.key in world.residual:
            return
        key, since = before
        self.told["called again"] += 1
        if EFFECTS[call.tool] == "idempotent" and key == call.key:
            return
        if not any(row["step_id"] == call.unit and _is_word(row) for row in self.rows[since:]):
            world.broken(f"{call.tool} of {call.unit} is called again, and nobody knows what its last call has done")


def _is_word(row: dict[str, Any]) -> bool:
    body = row["body"]
    said = {"outcome": True, "settlement": True, "decision": "settlement" in body, "late": body.get("settles", False)}
    return bool(said.get(row["kind"], False))


@dataclass(frozen=True)
class Doubtful(Plot):
    """A plot whose calls go as they are told to. `cancels` count callbacks like `crashes`: the drive is cancelled."""

    turns: tuple[str, ...] = ()
    late_s: float = 1.0
    threaded: bool = True
    cancels: tuple[int, ...] = ()
    watch: Watch = field(default_factory=Watch)

    def goes(self, call: Call) -> str:
        """How this call goes; after the last turn all go well, and so do those of steps that were planned anew."""
        planned = call.unit.startswith("s")
        place = int(call.unit.removeprefix("s")) * 3 + call.number - 1 if planned else len(self.turns)
        return self.turns[place] if call.number <= 3 and place < len(self.turns) else "ok"


async def _effect(name: str, ctx: ToolContext, by: str) -> Any:
    world = stage[-1]
    call = world.begin(name, ctx, {"by": by, "given": None})
    world.end(call)  # who is abandoned in a thread is in nobody's way
    plot = world.plot
    assert isinstance(plot, Doubtful)
    plot.watch.begins(world, call)
    turn = plot.goes(call)
    plot.watch.told[turn] += 1
    await asyncio.sleep(0.05)
    if turn in ("refused", "never"):
        raise ToolFailure("CONFLICT" if turn == "refused" else "NOT_FOUND", turn)
    value = world.truth(call.key) or world.value(call)
    if turn not in ("hang", "late_refused"):
        world.land(call, value)
    if turn in ("ok", "broken"):
        await asyncio.sleep(0.05)
    else:
        await asyncio.sleep(TIMEOUT_S + plot.late_s if turn.startswith("late") else 10 * TIMEOUT_S)
    if turn.endswith("broken"):
        raise ConnectionResetError(turn)
    if turn == "late_refused":
        raise ToolFailure("CONFLICT", turn)
    return value


def _registry(*, threaded: bool) -> Registry:
    """The effects, as coroutines, or as plain functions whose work goes on after its deadline, as a thread's does."""
    kit = Toolkit("doubtful")
    for name, effect, more in (
        ("book", "idempotent", {"retry": ONCE}),
        ("send", "irreversible", {}),
        ("wire", "irreversible", {"probe": _probe}),
    ):
        options: dict[str, Any] = {"effect": effect, "timeout_s": TIMEOUT_S, "breaker": NEVER_OPEN, **more}
        kit.add(_function(name, threaded=threaded), name=name, description=name, **options)

    async def look(ctx: ToolContext, given: Any = None) -> Any:
        world = stage[-1]
        call = world.begin("look", ctx, {"given": given})
        world.end(call)
        await asyncio.sleep(40.0)
        return world.value(call)

    kit.add(look, name="look", description="look", effect="read", timeout_s=3 * TIMEOUT_S)
    return Registry.of(kit)


def _function(name: str, *, threaded: bool) -> Callable[..., Any]:
    async def on_loop(ctx: ToolContext, by: str, given: Any = None) -> Any:
        return await _effect(name, ctx, by)

    def in_thread(ctx: ToolContext, by: str, given: Any = None) -> Any:
        return _effect(name, ctx, by)

    return in_thread if threaded else on_loop


REGISTRIES = {threaded: _registry(threaded=threaded) for threaded in (False, True)}


class Inline:
    """Stands for the pool of threads, where there are none: what a thread returns is there at once."""

    @staticmethod
    def submit(_tool: str, work: Callable[[], Any]) -> asyncio.Future[Ended]:
        """Begin it."""
        ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        ended.set_result((work(), None))
        return ended


class DoubtfulStory(Story):
    """A story with these tools, in which drives are cancelled too."""

    def __init__(self, plot: Doubtful) -> None:
        super().__init__(plot)
        self.cancels = list(plot.cancels)
        self.registry = REGISTRIES[plot.threaded]
        self.world.server.on_row.append(plot.watch.row)

    async def _life(self, process: Process, act: Any) -> Any:
        from tests.simulation.memory_engine import agent_of

        opened = open_memory_engine(
            process.wire, self.registry, owner=process.name, worker=process.worker, model=process.model
        )
        async with opened as process.engine:
            return await act(agent_of(process.engine, process.wire, self.tables))

    def _tend(self, process: Process) -> None:
        if self.cancels and not process.task.done() and process.loop.handled >= self.cancels[0]:
            self.cancels.pop(0)
            self.world.say(f"{process.name} is cancelled")
            process.task.cancel()
        else:
            super()._tend(process)

    def _ended(self, process: Process) -> None:
        if not process.task.cancelled():
            super()._ended(process)
            return
        self._gone(process)
        self._look_at_what_is_left(process)
        self._later(1.0, self._try_again)


def played(plot: Doubtful) -> World:
    """The world after the story of this plot."""
    schemas.load()
    with _same_every_time(plot.chance("ids")), mock.patch.object(isolation, "POOL", Inline()):
        story = DoubtfulStory(plot)
        stage.append(story.world)
        try:
            return story.tell()
        finally:
            stage.pop()


def plan(tools: tuple[str, ...], *, chained: bool, company: bool) -> dict[str, Any]:
    """A step for each of these effects, one after the other or side by side, and perhaps a long read beside them."""
    steps: list[dict[str, Any]] = [
        {
            "id": f"s{place}",
            "tool": tool,
            "args": {"by": f"s{place}"},
            "depends_on": [f"s{place - 1}"] if chained and place else [],
            "on_dependency_failure": "degrade",
            "reason": "test",
        }
        for place, tool in enumerate(tools)
    ]
    if company:
        steps.append({"id": "look", "tool": "look", "args": {"given": 1}, "reason": "test"})
    return {"goal": "doubts", "steps": steps}


callbacks = st.integers(1, 900)
plots = st.builds(
    lambda seed, tools, chained, company, **more: Doubtful(
        seed=seed,
        manner="doubtful",
        plan=plan(tools, chained=chained, company=company),
        concurrency=4,
        lost=0.0,
        **more,
    ),
    seed=st.integers(0, 10_000),
    tools=st.lists(st.sampled_from(("book", "send", "wire")), min_size=1, max_size=3).map(tuple),
    chained=st.booleans(),
    company=st.booleans(),
    turns=st.lists(st.sampled_from(TURNS), max_size=9).map(tuple),
    late_s=st.sampled_from(LATE_S),
    threaded=st.booleans(),
    latency_s=st.sampled_from((0.0, 0.0, 0.004, 0.2)),
    shuffle=st.sampled_from((0.0, 0.3)),
    crashes=st.lists(callbacks, max_size=2).map(tuple),
    cancels=st.lists(callbacks, max_size=1).map(tuple),
    pause=st.none() | callbacks,
    twins=st.booleans(),
)

seen: Counter[str] = Counter()


# Not made smaller: a story takes a tenth of a second, and its trace says what has happened.
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(plot=plots)
def test_an_effect_is_never_called_twice_without_a_known_outcome(plot: Doubtful) -> None:
    """Raised before it is sent or after it has happened, no answer in time or a late one, the run cancelled, the worker
    killed, asleep or replaced: through the real engine, the calls of which nobody knows are never more than one."""
    plot.watch.__init__()  # type: ignore[misc]  # an example may be played again
    world = played(plot)
    seen.update(plot.watch.told)
    gc.collect()
    assert world.wrong == [], "\n".join(world.said[-40:])


def test_all_of_it_has_happened() -> None:
    """The property above has seen every kind of call, calls that were made again, and late answers of both kinds."""
    assert {*TURNS, "called again", "late and settled", "late and noted"} <= {name for name in seen if seen[name]}
