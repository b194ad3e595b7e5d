"""Asking a person: a pending approval, recorded the moment its step is ready; and what a person's answer changes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nodes.acting import principal_of
from nodes.admit import Ask
from nodes.answers import by_default, default_decision, take_decisions
from nodes.events import Event
from nodes.policing import asking_terms, on_terms
from nodes.step_run import base_id
from nodes.taint import sources_of
from plans.decisions import ApprovalRequest, RequestKind
from plans.errors import ApprovalConflict, NotPermitted
from plans.plan import Risk
from plans.principals import Principal
from plans.provenance import Provenance
from plans.values import JSON, printable, sha256_of

if TYPE_CHECKING:
    from nodes.session import Session

LONGEST_REASON = 1_000
"""Characters of why a person is asked: one line, for it may hold names and paths that a model has written."""


async def ask_person(session: Session, unit: str, asked: Ask) -> None:
    """A step that is ready and needs a person waits, and holds up only what depends on it."""
    tool = session.fold.run(unit).tool or session.step(base_id(unit)).tool or session.step(base_id(unit)).action
    reason = printable(" ".join(asked.reason.split()), LONGEST_REASON)
    request = await record_request(session, unit, "risk", tool, asked.args, asked.risk, reason, under=asked)
    session.scheduling().park(unit)
    await decided_by_default(session, request)


async def decided_by_default(session: Session, request: ApprovalRequest) -> None:
    """Answer at once what is asked in a run that asks nobody."""
    if decision := default_decision(session.approve, request.kind):
        with suppress(ApprovalConflict):  # somebody has decided before this run was told to ask nobody
            via = by_default(session.approve)
            await session.engine.approvals.decide(request.approval_id, decision, _who(session), via=via, refuses=True)
        await take_decisions(session)


def _who(session: Session) -> Principal:
    """In whose name a run that asks nobody is answered: whoever drives it, so that nobody counts for two; without the
    roles that they may have, for they have not looked."""
    try:
        name = principal_of(session.engine, session.config).name
    except NotPermitted:  # a server's own drive, of a run that somebody has begun
        name = session.head.started_by or "nobody"
    return Principal(name=name, tenant=session.head.tenant)


def approval_id(session: Session, unit: str, kind: RequestKind, tool: str, args: Mapping[str, JSON]) -> str:
    """Bound to run, step, tool and arguments, and for an outcome to its attempt: asking again is the same
    question, until it has been answered. A question that arises again after its answer is a new one."""
    attempt = _attempt(session, unit) if kind in ("unknown_outcome", "ticket") else 0
    question = [session.head_run_id, unit, kind, tool, dict(args), attempt]
    times = 0
    while (found := sha256_of([*question, times])[:24]) in session.fold.answered:
        times += 1
    return found


def _attempt(session: Session, unit: str) -> int:
    """The attempt that a question is about; what is asked about the plan is about none."""
    run = session.fold.steps.get(unit)
    return run.attempt if run is not None else 0


async def record_request(
    session: Session,
    unit: str,
    kind: RequestKind,
    tool: str,
    args: Mapping[str, JSON],
    risk: Risk,
    reason: str,
    *,
    under: Ask | None = None,
) -> ApprovalRequest:
    """Store one pending approval, in the table where people find it and in the journal; asking again changes nothing.
    It is asked on the terms of the admission that it is `under`, else on those of the run's policy.

    Nobody is shown what rests on results that are not accepted yet. Where a process has died between the two, people
    may have answered the question as it was stored: then that is the question, on its terms.
    """
    await session.flush()
    attempt = _attempt(session, unit)
    asked = approval_id(session, unit, kind, tool, args)
    before = await _withdraw_others(session, unit, asked)
    terms = under.terms if under else asking_terms(session.fold.policies)
    created_at = datetime.fromtimestamp(session.clock.wall(), UTC)
    request = ApprovalRequest(
        approval_id=asked,
        run_id=session.head_run_id,
        thread_id=session.head.thread_id,
        step_id=unit,
        tool=tool,
        args=dict(args),
        args_sha256=sha256_of(dict(args)),
        risk=risk,
        reason=reason,
        kind=kind,
        attempt=attempt,
        created_at=created_at,
        sources=_sources(session, unit, kind),
        rule=under.rule if under else None,
        **on_terms(terms, kind, created_at, session.engine.options.approval_expires_s, session.head.started_by),
    )
    await session.engine.approvals.record([request])
    request = before or request
    await session.record("asked", unit, attempt, body={"request": request.model_dump(mode="json")})
    session.emit(Event(kind="approval", step_id=unit, tool=tool, status="pending", message=reason))
    return request


def _sources(session: Session, unit: str, kind: RequestKind) -> tuple[Provenance, ...]:
    """Where the arguments of what is asked about come from; of what is no call of a step, nothing."""
    if kind not in ("risk", "unknown_outcome"):
        return ()
    return sources_of(session.fold, session.step(base_id(unit)), unit)


async def _withdraw_others(session: Session, unit: str, asked: str) -> ApprovalRequest | None:
    """A step run asks one question at a time: one that it has asked with other arguments no longer arises (rule 10).
    Gives the question of this id, if it was stored before and not taken back."""
    stored = await session.engine.approvals.of_run(session.head_run_id)
    others = [each.request.approval_id for each in stored if each.request.step_id == unit and each.status == "pending"]
    if gone := await session.engine.approvals.withdraw([each for each in others if each != asked]):
        await session.record("withdrawn", unit, body={"approval_ids": gone})
    known = (each.request for each in stored if each.status != "withdrawn" and each.request.approval_id == asked)
    return next(known, None)
