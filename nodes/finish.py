"""finish: awaits what is in flight, says how the run ended, and what it gave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from checkpoints.crash_points import reached
from checkpoints.runs import OPEN
from nodes.answer_lines import Line, filled
from nodes.lacks import lacks
from nodes.origins import notes
from nodes.state import AgentState, RunHead, RunStatus
from nodes.step_run import base_id
from nodes.stopping import account, failed_because, higher_limits, open_hits
from nodes.tainted_answer import tainted_parts
from nodes.template_record import served
from plans.failure import Failure
from plans.references import references_in
from plans.tolerance import gone_on_without
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.session import Session

ANSWER_CHARACTERS = 4_000
"""Longest answer made from a bare result; a report says more in its file."""


async def finish(state: AgentState, session: Session) -> dict[str, Any]:
    """The end of a run, or of this stretch of it: status, answer, failures, and where the report is."""
    if session.fold.finished is not None:  # the process died after this node had decided
        return await _ended(state, session, session.fold.finished)
    if session.cancelled:
        await session.scheduling().stop()
    elif session.scheduler is not None:
        await session.scheduler.settle()
    failures = _failures(session)
    status = _status(session, failures)
    values = await _values(session)
    planned = [] if status != "done" else await _planned_answer(session)
    text = "\n".join(line.text for line in planned if line.text is not None)
    text = text or (_readable(values[-1]) if values else _nothing(session))
    unsaid = [line for line in planned if line.text is None]
    answer = _answer(session, status, failures, "\n".join((text, *_untold(session, unsaid))))
    report = next((v["report_html"] for v in reversed(values) if isinstance(v, dict) and v.get("report_html")), None)
    body = {
        "status": status,
        "answer": answer,
        "failures": [failure.model_dump() for failure in failures],
        "report_ref": await asyncio.to_thread(_place, session.head, report) if report else None,
        "missing": {lack.unit: lack.why for lack in lacks(session.fold)},
        "left_out": [{"line": line.written, "why": line.why} for line in unsaid],
        "raise_limits": higher_limits(session.fold) if status == "limited" else {},
        "wall_s": round(session.elapsed_s(), 3),
    }
    await session.record("finish", body=body, wait=True)
    reached("finish.recorded")
    return await _ended(state, session, body)


async def _ended(state: AgentState, session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """Tell everybody how it has ended, in the order in which a crash in between does least harm."""
    summary = {"answer": body["answer"], "report_ref": body["report_ref"], "failure": _first(body["failures"])}
    await session.flush()
    owner = session.head_run_id, session.lease.fence
    await session.engine.runs.set_status(*owner, body["status"], summary, served=served(session.fold, body))
    if body["status"] not in OPEN:
        stored = await session.engine.approvals.of_run(session.head_run_id)
        await session.engine.approvals.withdraw([each.request.approval_id for each in stored if not each.decision])
    failures = [Failure.model_validate(failure) for failure in body["failures"]]
    update = {name: body.get(name) for name in ("status", "answer", "report_ref", "missing")} | {"failures": failures}
    update["tainted"] = {part.line: list(part.tainted_by) for part in tainted_parts(session.fold)} or None
    if state.get("messages"):
        told = {"tainted": update["tainted"]} if update["tainted"] else {}
        said = AIMessage(body["answer"] or "", id=f"{session.head_run_id}-answer", response_metadata=told)
        update["messages"] = [said]
    return update


def _first(failures: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What people are told of a run that did not get through."""
    return {name: failures[0][name] for name in ("code", "message")} if failures else None


def _failures(session: Session) -> list[Failure]:
    """What failed for good, the plan first. A failure that a retry, fallback or replan has mended is none."""
    found = [
        Failure(code=verdict.code, message=verdict.reason)
        for verdict in session.fold.queue
        if verdict.verdict == "finish" and not verdict.step_id
    ]
    found += [run.failure for run in session.fold.steps.values() if run.failure and run.status in ("failed", "running")]
    if session.cancelled:
        return [*found, *_in_doubt(session)]
    told = {failure.code for failure in found}
    hits = [hit for hit in open_hits(session.fold) if hit.code not in told]
    return [*found, *(Failure(code=hit.code, message=hit.message) for hit in hits)]


def _place(head: RunHead, report: str) -> str:
    """Where a report is: in the run's own folder, or in that of a run it was forked from."""
    folders = (head.output_folder, *(head.forked.folders if head.forked else ()))
    found = (str(Path(folder, report)) for folder in folders if Path(folder, report).is_file())
    return next(found, str(Path(head.output_folder, report)))


def _in_doubt(session: Session) -> list[Failure]:
    """Effects that had begun when their worker died. What a transaction had not committed has not happened."""
    begun = [(unit, run) for unit, run in session.fold.steps.items() if run.in_doubt is not None and not run.failure]
    found = []
    for unit, run in begun:
        name = (run.in_doubt or {}).get("tool", "")
        tool = session.engine.registry.get(name)
        if tool is None or tool.effect != "transactional":
            message = f"whether {name} of step {unit} has happened is not known: the work stopped in between"
            found.append(Failure(code="UNKNOWN_OUTCOME", message=message, step_id=unit, tool=name, attempt=run.attempt))
    return found


def _status(session: Session, failures: list[Failure]) -> RunStatus:
    if session.cancelled and (session.fold.plan is None or _left(session)):
        return "cancelled"
    if any(failure.class_ == "limit" for failure in failures) or open_hits(session.fold):
        return "limited"
    if session.fold.plan is None or any(verdict.verdict == "finish" for verdict in session.fold.queue):
        return "failed"
    if any(failure.step_id is None for failure in failures):
        return "failed"
    tolerated = all(_tolerated(session, failure) for failure in failures)
    return "done" if tolerated and not _left(session) else "failed"


def _left(session: Session) -> list[str]:
    """Steps that have neither ended nor failed."""
    return [step.id for step in session.plan.steps if session.fold.status(step.id) in ("pending", "running")]


def _tolerated(session: Session, failure: Failure) -> bool:
    """A failure is tolerated where something that depended on it has gone on without it."""
    return gone_on_without(session.plan.steps, base_id(failure.step_id or ""))


async def _values(session: Session) -> list[JSON]:
    """The results of the steps that nothing depends on, and of those that wrote a report; in plan order."""
    if session.fold.plan is None:
        return []
    read = {name for step in session.plan.steps for name in step.depends_on}
    last = [step.id for step in session.plan.steps if step.id not in read]
    return [await session.value(step_id) for step_id in last if session.fold.run(step_id).output is not None]


def _answer(session: Session, status: RunStatus, failures: list[Failure], text: str) -> str | None:
    said = dict.fromkeys(failure.message for failure in failures)
    if status == "cancelled":
        return "; ".join(["cancelled because somebody asked for it", *said])
    if status == "limited":
        return account(session.fold, list(said))
    if status != "done":
        why = list(said) or [f"the run has ended before these steps have: {', '.join(_left(session))}"]
        return failed_because(session.fold, why)
    told = [f"Note: {note}." for note in notes(session.fold)]
    gone = lacks(session.fold)
    missing = [f"Missing: step {lack.unit} ({lack.why})." for lack in gone if lack.failed]
    left_out = [f"Left out: step {lack.unit} ({lack.why})." for lack in gone if not lack.failed]
    return "\n".join((text, *told, *missing, *left_out))


def _nothing(session: Session) -> str:
    """The answer of a run that has no result to show; what is missing in it is told beside."""
    steps = session.plan.steps if session.fold.plan is not None else ()
    missed = {lack.unit for lack in lacks(session.fold)}
    skipped = [(step.id, session.fold.run(step.id)) for step in steps if session.fold.status(step.id) == "skipped"]
    told = [f"step {name} ({run.skipped_because})" for name, run in skipped if name not in missed]
    if told:
        return f"There is no result. Left out: {'; '.join(told)}."
    return "There is no result." if missed else "done"


async def _planned_answer(session: Session) -> list[Line]:
    """The plan's own answer, line by line, with what its references stand for; empty if it has none."""
    template = session.plan.answer
    if template is None:
        return []
    named: dict[str, JSON] = {"inputs": session.head.input_values()}
    for reference in references_in(template):
        if session.fold.run(reference.name).output is not None:
            named[reference.name] = await session.value(reference.name)
    return list(filled(template, named))


def _untold(session: Session, lines: Sequence[Line]) -> Iterator[str]:
    """What to say of lines that find nothing. Nothing of those about steps without a result: as their plan wanted it,
    or told already as missing."""
    for line in lines:
        names = [reference.name for reference in references_in(line.written)]
        if all(name == "inputs" or session.fold.run(name).output is not None for name in names):
            yield f"Left out: a line of the answer ({line.why})."


def _readable(value: JSON) -> str:
    """A result as an answer: what it calls its summary, answer or text, else its JSON, cut if it is long."""
    if isinstance(value, dict):
        for name in ("summary", "answer", "text", "message"):
            if isinstance(value.get(name), str) and value[name]:
                return str(value[name])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= ANSWER_CHARACTERS else text[:ANSWER_CHARACTERS] + " …"
