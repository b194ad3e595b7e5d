"""The world around the engine: what tools do to it, who keeps count, and what is noticed while it happens."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from checkpoints.artifacts import Artifact
from nodes.missing import without
from nodes.step_run import base_id, child_index
from plans.plan import Plan
from plans.references import resolve
from plans.values import sha256_of
from tests.simulation.plot import Plot
from tests.simulation.server import Server

if TYPE_CHECKING:
    from nodes.session import Session
    from plans.plan import Step
    from tests.simulation.story import Process
    from tools.context import ToolContext

EFFECTS = {
    "look": "read",
    "scan": "read",
    "glance": "read",
    "tally": "read",
    "note": "transactional",
    "book": "idempotent",
    "send": "irreversible",
    "wire": "irreversible",
}
BETWEEN_LOOK_AND_CALL = 3
"""Callbacks from the last look at the clock (`tools/deadline.py`) until the tool itself runs."""

TOOL_LIMITS = {"scan": 2}
"""Tools that declare how many calls of them may run at once."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a tool, as the world sees it."""

    process: Process
    unit: str
    tool: str
    args: Mapping[str, Any]
    key: str
    number: int


@dataclass(frozen=True, eq=False)
class Request:
    """An effect on its way: it arrives, or it does not."""

    call: Call
    value: Any


@dataclass(frozen=True)
class Landing:
    """An effect that has happened."""

    unit: str
    tool: str
    key: str
    value: Any
    at: float


@dataclass(eq=False)
class World:
    """Everything outside of the engine. `wrong` is what broke a law, `said` the trace of what happened,
    `residual` the keys of calls whose worker was stopped after its last look at the clock: the point that rule 6 leaves
    open."""

    plot: Plot
    server: Server
    processes: dict[asyncio.AbstractEventLoop, Process] = field(default_factory=dict)
    landed: dict[str, list[Landing]] = field(default_factory=dict)
    produced: dict[str, Any] = field(default_factory=dict)
    running: dict[Process, list[Call]] = field(default_factory=dict)
    on_the_wire: list[Request] = field(default_factory=list)
    numbers: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    questions: Counter[str] = field(default_factory=Counter)
    residual: set[str] = field(default_factory=set)
    nonces: int = 0
    over: bool = False

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.server.timeline.now

    def say(self, text: str) -> None:
        """A line of the trace, while the story is told."""
        if self.over:
            return
        self.said.append(f"{self.now:12.4f} {self.server.timeline.steps:6d}  {text}")

    def broken(self, law: str) -> None:
        """A law was broken."""
        self.say(f"BROKEN: {law}")
        if self.over:
            return
        self.wrong.append(f"{self.now:.4f} s: {law}")

    def process(self) -> Process:
        """The process whose loop runs now."""
        return self.processes[asyncio.get_running_loop()]

    def begin(self, tool: str, ctx: ToolContext, args: Mapping[str, Any]) -> Call:
        """A call begins: it is looked at before anything comes of it."""
        self.numbers[ctx.step_id, tool] += 1
        number = self.numbers[ctx.step_id, tool]
        call = Call(self.process(), ctx.step_id, tool, args, ctx.idempotency_key, number)
        self.say(f"{call.process.name}: {call.unit} {tool} call {number} begins, given {json.dumps(args)[:100]}")
        self.running.setdefault(call.process, []).append(call)
        self._look_at_limits(call)
        self._look_at_repetition(call)
        self._look_at_arguments(call)
        if EFFECTS[tool] != "read":
            self._look_at_foundations(call)
        return call

    def end(self, call: Call) -> None:
        """A call is over, in whatever way."""
        if not call.process.dead:
            self.running[call.process].remove(call)

    def value(self, call: Call) -> Any:
        """What a call gives. In a pure world the same for the same call, else never the same twice."""
        self.nonces += 1
        pure = int(sha256_of([call.unit, dict(call.args)])[:6], 16)
        nonce = pure if self.plot.manners.pure else self.nonces
        if call.tool == "tally":
            return self.known([nonce * 100 + place for place in range(nonce % 3 + 1)])
        return self.known({"me": call.unit, "tool": call.tool, "given": dict(call.args), "nonce": nonce})

    def known(self, value: Any) -> Any:
        """A value, from now on known by the name that it will be stored under."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self.produced[Artifact.of(body, "").output_ref] = value
        return value

    def land(self, call: Call, value: Any) -> None:
        """The effect of a call happens. With a key that was seen before, `book` does nothing."""
        before = self.landed.setdefault(call.key, [])
        if before and EFFECTS[call.tool] == "idempotent":
            return
        self.say(f"the world: {call.unit} {call.tool} {call.key[:8]} has happened")
        before.append(Landing(call.unit, call.tool, call.key, value, self.now))
        if len(before) > 1 and call.key not in self.residual:
            self.broken(f"the effect {call.tool} of {call.unit} has happened {len(before)} times with one key")

    def post(self, call: Call, value: Any, seconds: float) -> None:
        """The effect is on its way: it happens in so many seconds, unless its process dies before."""
        waiting = Request(call, value)
        self.on_the_wire.append(waiting)
        self.server.timeline.at(self.now + seconds, lambda: self._arrive(waiting))

    def _arrive(self, waiting: Request) -> None:
        if waiting in self.on_the_wire:
            self.on_the_wire.remove(waiting)
            self.land(waiting.call, waiting.value)

    def dies(self, process: Process, *, is_seen: bool) -> None:
        """What the process had on its way arrives now or never; or in its time, where nobody sees that it is dead."""
        self.running.pop(process, None)
        for waiting in [each for each in self.on_the_wire if each.call.process is process]:
            if not is_seen:
                self._delay(waiting)
            elif self.plot.chance("arrives", waiting.call.key, waiting.call.number).random() < 0.5:
                self._arrive(waiting)
            else:
                self.on_the_wire.remove(waiting)

    def asked(self, task: str) -> int:
        """A model is asked this for the so-manieth time. What it has said, once accepted, is not asked again by whoever
        drives the run; a stale worker may, and its answer is dropped."""
        self.questions[task] += 1
        sessions = self.process().engine.sessions
        if not all(self.server.owns(run_id, each.lease.fence) for run_id, each in sessions.items()):
            return self.questions[task]
        rows = [row for run in self.server.runs for row in self.server.rows_of(run)]
        key = next(row["body"]["key"] for row in reversed(rows) if row["kind"] == "reservation")
        if any(row["kind"] == "model" and row["body"]["key"] == key and "text_ref" in row["body"] for row in rows):
            self.broken(f"a model is asked again what it has answered: {key}")
        return self.questions[task]

    def answered(self, text: str) -> None:
        """What a model has said, and the name under which it will be stored."""
        self.known(text)

    def steps_now(self) -> list[dict[str, Any]]:
        """The steps of the current revision, as its author would write them."""
        rows = [row for run in self.server.runs for row in self.server.rows_of(run) if row["kind"] == "plan"]
        plan = Plan.model_validate(rows[-1]["body"]["plan"])
        return [step.model_dump(mode="json", exclude_defaults=True) for step in plan.draft.steps]

    def key_in_doubt(self, run_id: str, unit: str) -> str:
        """The key of a step run's last intent."""
        rows = [row for row in self.server.rows_of(run_id) if row["step_id"] == unit and row["kind"] == "intent"]
        return str(rows[-1]["body"]["key"])

    def _delay(self, waiting: Request) -> None:
        """It is held up somewhere on its way, for as long as its intent allows."""
        call = waiting.call
        rows = [row for run in self.server.runs for row in self.server.rows_of(run) if row["kind"] == "intent"]
        until = [row["body"].get("settled_after", 0.0) for row in rows if row["body"]["key"] == call.key][-1]
        self.on_the_wire.remove(waiting)
        self.post(call, waiting.value, max(0.0, until - self.server.timeline.wall() - 0.001))

    def truth(self, key: str) -> Any:
        """The result of the effect with this key; None if it has not happened."""
        return self.landed[key][0].value if self.landed.get(key) else None

    def _look_at_limits(self, call: Call) -> None:
        now = self.running[call.process]
        if len({each.unit for each in now}) > self.plot.concurrency:
            self.broken(f"{len(now)} calls at once, with a limit of {self.plot.concurrency}")
        most = TOOL_LIMITS.get(call.tool)
        if most is not None and sum(each.tool == call.tool for each in now) > most:
            self.broken(f"more than {most} calls of {call.tool} at once")

    def _look_at_repetition(self, call: Call) -> None:
        """What has an accepted result is never begun again; a stale worker can still read, which harms nobody."""
        session = self.session_of(call)
        row = self._finished(call.unit)
        is_stale = not self.server.owns(session.head_run_id, session.lease.fence)
        if row is not None and not is_stale:
            self.broken(f"{call.unit} is called again, although row {row['fence']}.{row['n']} says that it is done")
        if not is_stale or EFFECTS[call.tool] not in (
            "idempotent",
            "irreversible",
        ):  # a transaction's commit is refused
            return
        if call.process.loop.handled - call.process.woke_at <= BETWEEN_LOOK_AND_CALL:
            self.residual.add(call.key)
        else:
            self.broken(f"{call.process.name} begins the effect of {call.unit} although it is no longer owner")

    def _finished(self, unit: str) -> dict[str, Any] | None:
        """The accepted row of this step run's result, unless a revision has made it another step since."""
        found: dict[str, Any] | None = None
        steps: dict[str, Any] = {}
        for run_id in self.server.runs:
            for row in self.server.rows_of(run_id):
                if row["kind"] == "plan":
                    now = {step["id"]: step for step in row["body"]["plan"]["steps"]}
                    if now.get(base_id(unit)) != steps.get(base_id(unit)):
                        found = None
                    steps = now
                elif row["step_id"] == unit and row["kind"] in ("outcome", "late") and "output" in row["body"]:
                    if row["kind"] == "late" and not row["body"].get("settles"):
                        continue
                    found = row
        return found

    def session_of(self, call: Call) -> Session:
        """The session that a call belongs to."""
        sessions = call.process.engine.sessions
        closing = call.process.sessions
        found = next(iter(sessions.values()), None) or next(iter(closing.values()))
        closing[found.head_run_id] = found
        return found

    def _look_at_arguments(self, call: Call) -> None:
        """They are what the step's references resolve to, from the results of its own dependencies, or what its intent
        says."""
        session = self.session_of(call)
        run = session.fold.run(call.unit)
        step = session.step(base_id(call.unit))
        if run.in_doubt is not None:
            expected = run.in_doubt["args"]
        elif run.args is not None:
            expected = run.args
        else:
            expected = self._resolved(session, step, call.unit)
        if dict(call.args) != {"given": None, **expected} and dict(call.args) != expected:
            self.broken(f"{call.unit} got {dict(call.args)}, and its references say {expected}")

    def _look_at_foundations(self, call: Call) -> None:
        """Before an effect begins, its own intent is accepted, and so is the end of every step that it rests on."""
        session = self.session_of(call)
        rows = self.server.rows_of(session.head_run_id)
        if not any(row["kind"] == "intent" and row["body"]["key"] == call.key for row in rows):
            self.broken(f"the effect of {call.unit} begins before its intent is accepted")
        ended = {
            row["step_id"]
            for row in rows
            if row["kind"] in ("outcome", "skip", "settlement", "decision", "refusal") or row["body"].get("settles")
        }
        if missing := set(session.step(base_id(call.unit)).depends_on) - ended:
            self.broken(f"the effect of {call.unit} begins before the ends of {sorted(missing)} are accepted")

    def _resolved(self, session: Session, step: Step, unit: str) -> Any:
        named: dict[str, Any] = {"inputs": {}}
        missing = []
        for name in step.depends_on:
            value = self._result(session, name)
            named[name] = value
            if value is None:
                missing.append(name)
        if (index := child_index(unit)) is not None:
            named["item"] = resolve(without(step.for_each, missing), named.__getitem__)[index]
        return resolve(without(step.args, missing), named.__getitem__)

    def _result(self, session: Session, name: str) -> Any:
        """A step's result, as the world gave it out; of a list, its children's."""
        run = session.fold.run(name)
        if run.output is None:
            return None
        if name in session.fold.expansions:
            return [self._result(session, unit) for unit in session.fold.children(name)]
        if run.output.output_ref not in self.produced:
            self.broken(f"{name} has a result that nobody gave: {run.output.output_ref}")
            return None
        value = self.produced[run.output.output_ref]
        if isinstance(value, dict) and value["me"] != name:
            self.broken(f"{name} has the result of {value['me']}")
        return value
