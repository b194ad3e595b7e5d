"""How an attempt's end is written down: the artifact first, then the row that names it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nodes.events import Event
from nodes.origins import read_by, remark, roots_among
from nodes.step_run import base_id
from nodes.taint import result_taint
from plans.expressions import InvalidExpression, holds
from plans.failure import Failure
from plans.plan import Step
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.session import Session
    from nodes.state import Verdict

NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})


def criterion_failure(session: Session, unit: str, step: Step, value: JSON) -> Failure | None:
    """Why a result is no success after all: the step's own criterion is false. Each child of a `for_each` step is
    judged by it, and their list is not."""
    if step.success_when is None or unit in session.fold.expansions:
        return None
    run = session.fold.run(unit)
    try:
        if holds(step.success_when, value):
            return None
        message = f"step {unit} did not succeed: {step.success_when} is false of its result"
    except InvalidExpression as error:
        message = f"the criterion of step {unit} cannot be judged: {error}"
    attempt = run.attempt + (run.in_doubt is None)
    return Failure(code="CRITERION_FALSE", message=message, step_id=unit, tool=run.tool or step.tool, attempt=attempt)


async def outcome_body(
    session: Session,
    unit: str,
    value: JSON,
    *,
    started: float,
    degraded: str | None = None,
    told: Mapping[str, Any] = NOTHING_MORE,
    by_person: bool = False,
) -> tuple[dict[str, Any], Any]:
    """The body of an outcome row, and the small artifact that travels with it. `told` is what the row says beside:
    that nothing was called, how old the result was, that it is a mock, or which tool has answered for this one.
    `by_person` says that a person has written the value."""
    output, carried = await session.results.store(value)
    body: dict[str, Any] = {
        "output": output.as_stored(),
        "elapsed_s": round(session.clock.monotonic() - started, 6),
        **told,
    }
    notes = [note for note in (session.fold.run(unit).degraded, degraded) if note]
    if notes:
        body["degraded"] = " and ".join(dict.fromkeys(notes))
    step = session.step(base_id(unit))
    read = read_by(session.fold, step, unit, conditions=False)
    decisive = read if step.when is None and step.requires is None else read_by(session.fold, step, unit)
    if roots := roots_among(session.fold, decisive):
        body["rests_on"] = list(roots)
    trusted = _is_trusted(session, unit, step, told.get("answered_by"))
    tainted_by = () if by_person else result_taint(session.fold, step, unit, read, trusted=trusted)
    body["tainted_by"] = list(tainted_by)
    return body, carried


def _is_trusted(session: Session, unit: str, step: Step, answered_by: str | None) -> bool:
    """Whether what has made a result adds nothing of a stranger's: a model, a list of other results, or a tool whose
    output is trusted, whoever answers for it."""
    if step.action != "tool" or unit in session.fold.expansions:
        return True
    declared = session.engine.registry.declared
    names = [session.fold.run(unit).tool or step.tool or "", *([answered_by] if answered_by else ())]
    return all(name in declared and declared[name].spec.output_trust == "trusted" for name in names)


async def record_verdict(session: Session, verdict: Verdict, unit: str | None = None, **more: Any) -> None:
    """Write down what was decided about a step run, or about the run as a whole. `more` stands beside it in the row."""
    attempt = 0 if unit is None else verdict.attempt
    await session.record("verdict", unit, attempt, body={"verdict": verdict.model_dump(), **more})


async def record_success(
    session: Session,
    unit: str,
    step: Step,
    value: JSON,
    *,
    started: float,
    degraded: str | None = None,
    happened: bool = False,
    told: Mapping[str, Any] = NOTHING_MORE,
) -> None:
    """Store a result and its outcome row; dependents may start at once, effects among them wait for the row.

    `happened` says that the world has changed, whether or not the result is a success.
    """
    if failure := criterion_failure(session, unit, step, value):
        await record_failure(session, unit, failure, elapsed_s=session.clock.monotonic() - started, happened=happened)
        return
    body, carried = await outcome_body(session, unit, value, started=started, degraded=degraded, told=told)
    run = session.fold.run(unit)
    attempt = run.attempt if run.in_doubt is not None else run.attempt + 1
    await session.record("outcome", unit, attempt, body=body, artifact=carried)
    announce(session, unit, step, told.get("answered_by"))


async def record_failure(
    session: Session,
    unit: str,
    failure: Failure,
    *,
    raw: str | None = None,
    elapsed_s: float = 0.0,
    happened: bool = False,
    called: bool = True,
) -> None:
    """Write a failure down; its raw text goes into an artifact and nowhere else."""
    failure, carried = await without_secrets(session, failure, raw)
    kind = "unknown" if failure.code == "UNKNOWN_OUTCOME" else "outcome"
    body: dict[str, Any] = {"failure": failure.model_dump(exclude_none=True), "elapsed_s": round(elapsed_s, 6)}
    if happened:
        body["happened"] = True
    if not called:
        body["called"] = False
    await session.record(kind, unit, failure.attempt, body=body, artifact=carried)
    announce(session, unit, session.step(base_id(unit)))


async def without_secrets(session: Session, failure: Failure, raw: str | None) -> tuple[Failure, Any]:
    """A failure as it may be stored, with the name of its raw text, and that text if it travels with the row. Whatever
    it came from (a tool, a model's endpoint, the database), what looks like a secret stays out of both."""
    privacy = session.engine.options.privacy
    stored: dict[str, Any] = {"message": privacy.text(failure.message)}
    carried = None
    if raw:
        text, carried = await session.results.keep(privacy.text(raw).encode("utf-8", "replace"), "text/plain")
        stored["raw_ref"] = text.output_ref
    return failure.model_copy(update=stored), carried


async def record_refusal(session: Session, unit: str, failure: Failure) -> None:
    """Write down that a step run may not start, or need not: it fails, and nothing was called."""
    failure, _ = await without_secrets(session, failure, None)
    await session.record("refusal", unit, failure.attempt, body={"failure": failure.model_dump()})


def announce(session: Session, unit: str, step: Step, answered_by: str | None = None) -> None:
    """Tell the stream where a step run stands now, and which tool has answered where it is not the step's own."""
    run = session.fold.run(unit)
    session.emit(
        Event(
            kind="step",
            step_id=unit,
            title=step.title,
            tool=run.tool or step.tool or step.action,
            status="in_doubt" if run.in_doubt is not None else run.status,
            attempt=run.attempt,
            elapsed_s=run.elapsed_s,
            message=run.failure.message if run.failure else remark(session.fold, unit),
            answered_by=answered_by,
        )
    )
