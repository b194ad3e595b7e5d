"""The laws: what must hold at every instant of a run, and what must hold when it has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from checkpoints.rows import row_from
from nodes.fold import fold_journal
from nodes.step_run import Output, base_id
from plans.moves import IllegalMove
from tests.simulation.world import EFFECTS, TOOL_LIMITS

if TYPE_CHECKING:
    from graph.result import RunResult
    from nodes.session import Session
    from plans.plan import Step
    from tests.simulation.story import Process
    from tests.simulation.world import World

Rows = Sequence[dict[str, Any]]


ULP_S = 1e-6
"""How exactly wall time can be told: a float of seconds since the epoch has no more digits."""


def look_around(world: World, living: Iterable[Process]) -> None:
    """Before time passes: nothing that could run waits, and no failure waits for its verdict.

    Only where the database takes no time: else the wait may be for it.
    """
    if world.plot.latency_s or world.plot.lost:
        return
    for process in living:
        if process.model.busy or not world.server.timeline.runs(process.loop) or not hasattr(process, "engine"):
            continue
        for session in process.engine.sessions.values():
            if session.fold.plan is not None and session.fold.finished is None and session.scheduler is not None:
                _look_at(world, process, session)


def _look_at(world: World, process: Process, session: Session) -> None:
    fold, scheduler = session.fold, session.scheduling()
    if fold.undecided:
        world.broken(f"{process.name}: time passes while {list(fold.undecided)} wait for a verdict")
    if len(scheduler.tasks) >= world.plot.concurrency or any(
        verdict.verdict in ("finish", "global_replan") for verdict in fold.queue
    ):
        return
    for step in session.plan.steps:
        is_pending = fold.status(step.id) == "pending" and step.id not in scheduler.tasks
        due = fold.run(step.id).not_before
        is_held = (
            any(asked.step_id == step.id for asked in fold.asked.values())
            or (due or 0.0) > session.clock.wall() - ULP_S
            or _is_taken(session, step)
        )
        if is_pending and not is_held and all(fold.is_over(name) for name in step.depends_on):
            world.broken(f"{process.name}: time passes while {step.id} is ready and a slot is free")


def _is_taken(session: Session, step: Step) -> bool:
    """Whether as many calls of the step's tool are in flight as it takes: what would only wait for it stays ready."""
    flying = [session.step(base_id(unit)) for unit in session.scheduling().tasks]
    return sum(each.tool == step.tool for each in flying) >= TOOL_LIMITS.get(step.tool or "", len(flying) + 1)


def check_ended(world: World, results: Sequence[RunResult]) -> None:
    """After the end: what the journal says, what the world knows and what was answered are one story."""
    runs = list(world.server.runs.values())
    if len(runs) != 1 or runs[0]["status"] not in ("done", "failed", "limited"):
        world.broken(f"the run has not ended: {[run['status'] for run in runs]}")
        return
    rows = world.server.rows_of(runs[0]["run_id"])
    try:
        fold_journal([row_from(row) for row in rows])
    except IllegalMove as illegal:
        world.broken(f"the journal tells what cannot be: {illegal}")
        return
    _effects_happened(world, rows)
    _nothing_lost(world, rows)
    _doubt_is_surfaced(world, rows)
    _keys_are_frozen(world, rows)
    _nobody_instructs(world, rows)
    if world.plot.manner in ("calm", "pure") and runs[0]["status"] != "done":
        world.broken(f"in a world without lasting failures the run ends as {runs[0]['status']}: {runs[0]['summary']}")
    if not results or results[-1].status != runs[0]["status"]:
        world.broken(f"who asked last was told {results[-1].status if results else 'nothing'}")


def _effects_happened(world: World, rows: Rows) -> None:
    """Done: its effect has happened, once. A transactional tool's row is there exactly when its outcome is."""
    picture = fold_journal([row_from(row) for row in rows])
    keys = {row["step_id"]: row["body"]["key"] for row in rows if row["kind"] == "intent"}
    tools = {row["step_id"]: row["body"]["tool"] for row in rows if row["kind"] == "intent"}
    for unit, run in picture.steps.items():
        if unit not in keys or run.status != "done":
            continue
        if EFFECTS[tools[unit]] in ("idempotent", "irreversible") and len(world.landed.get(keys[unit], ())) != 1:
            world.broken(f"{unit} is done, and its effect has happened {len(world.landed.get(keys[unit], ()))} times")
    written = [row["key"] for row in world.server.world]
    told = [row["body"]["output"]["output_ref"] for row in rows if row["kind"] == "outcome" and "output" in row["body"]]
    if len(written) != len(set(written)):
        world.broken(f"a transactional tool has written twice: {written}")
    for row in world.server.world:
        world.known(row["value"])
        if next(reversed(world.produced)) not in told and _reference(world, row["value"]) not in told:
            world.broken(f"what {row['unit']} wrote is there, and the row of its outcome is not")
    done = {unit for unit, run in picture.steps.items() if run.status == "done" and tools.get(unit) == "note"}
    if missing := done - {row["unit"] for row in world.server.world}:
        world.broken(f"{sorted(missing)} are done, and what they wrote is not there")


def _reference(world: World, value: Any) -> str:
    return next((ref for ref, known in world.produced.items() if known == value), "")


def _nothing_lost(world: World, rows: Rows) -> None:
    """Each accepted result can be read, byte for byte, and stays its step run's unless a revision has replaced it."""
    picture = fold_journal([row_from(row) for row in rows])
    for row in rows:
        output = row["body"].get("output")
        if output is None:
            continue
        stored = world.server.artifacts.get((row["run_id"], output["output_ref"]))
        body: bytes | None = None
        if stored is not None:
            body = stored["body"] or world.server.files.get(stored["sha256"])
        if body is None or hashlib.sha256(body).hexdigest() != Output.from_stored(output).sha256:
            world.broken(f"the result of {row['step_id']} is lost: {output['output_ref']}")
    kept = _accepted(rows)
    for unit, reference in kept.items():
        run = picture.steps.get(unit)
        if run is not None and run.output is not None and run.output.output_ref != reference:
            world.broken(f"{unit} has another result at the end than the one that was accepted")


def _accepted(rows: Rows) -> dict[str, str]:
    """The result of each step run that has one, by name; a step that a revision changes is another step."""
    kept: dict[str, str] = {}
    before: dict[str, Any] = {}
    for row in rows:
        if row["kind"] == "outcome" and "output" in row["body"]:
            kept[row["step_id"]] = row["body"]["output"]["output_ref"]
        elif row["kind"] == "plan":
            now = {step["id"]: step for step in row["body"]["plan"]["steps"]}
            kept = {unit: each for unit, each in kept.items() if now.get(base_id(unit)) == before.get(base_id(unit))}
            before = now
    return kept


def _doubt_is_surfaced(world: World, rows: Rows) -> None:
    """An irreversible effect whose owner was replaced before its outcome goes on only by its probe or by a person."""
    doubts: dict[str, int] = {}
    for row in rows:
        unit, kind = row["step_id"], row["kind"]
        if unit in doubts and row["fence"] != doubts[unit] and kind in ("intent", "outcome"):
            world.broken(f"the doubt about {unit} was settled by nobody: row {row['fence']}.{row['n']} {kind}")
        if kind == "outcome" or _says_what_became(row):
            doubts.pop(unit, None)
        if kind == "intent" and EFFECTS[row["body"]["tool"]] == "irreversible":
            doubts[unit] = row["fence"]


def _says_what_became(row: dict[str, Any]) -> bool:
    """Whether a probe, a person or the tool's own late answer has settled a doubt."""
    body = row["body"]
    match row["kind"]:
        case "settlement":
            return True
        case "decision":
            return bool(body.get("settlement"))
        case _:
            return row["kind"] == "late" and bool(body.get("settles"))


def _settled(row: dict[str, Any]) -> bool:
    """Whether the row says of an effect in doubt that it has happened, or that nobody wants it any more."""
    if row["kind"] == "late":
        return _says_what_became(row)
    said = row["body"].get("settlement") if row["kind"] == "decision" else row["body"]
    return row["kind"] in ("settlement", "decision") and bool(said) and said["how"] != "run"


def _nobody_instructs(world: World, rows: Rows) -> None:
    """What a worker sends when it goes on is never taken for a person's new instruction."""
    if any(row["kind"] == "verdict" and row["body"]["verdict"]["code"] == "NEW_INSTRUCTION" for row in rows):
        world.broken("the goal itself was taken for an instruction")


def _keys_are_frozen(world: World, rows: Rows) -> None:
    """While a step run is in doubt, what is sent again is what was sent: key and arguments."""
    open_: dict[str, dict[str, Any]] = {}
    for row in rows:
        unit = row["step_id"]
        if row["kind"] == "intent":
            before = open_.get(unit)
            if before is not None and any(before[name] != row["body"][name] for name in ("key", "args", "tool")):
                world.broken(f"{unit} was in doubt, and its intent {row['fence']}.{row['n']} is another one")
            open_[unit] = row["body"]
        elif row["kind"] == "outcome" or _settled(row):
            open_.pop(unit, None)
        elif row["kind"] == "plan":
            now = {step["id"] for step in row["body"]["plan"]["steps"]}
            if gone := [each for each in open_ if base_id(each) not in now]:
                world.broken(f"a revision drops {gone}, which are in doubt")
