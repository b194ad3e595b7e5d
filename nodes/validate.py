"""validate: no draft runs before it is a plan. All faults at once; a revision is stored before it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from checkpoints.crash_points import reached
from nodes.answers import edited_draft, take_decisions
from nodes.capabilities import charter_of, within
from nodes.clarify import only_asks
from nodes.drafts import keep_draft
from nodes.early import settle
from nodes.events import Event
from nodes.fold_rows import outdated
from nodes.fold_verdicts import promises
from nodes.ladder import is_answered, is_refused, next_rung
from nodes.part import given_up, is_a_person_s, of_the_part
from nodes.planner import keeping
from nodes.questions import ask_about_plan
from nodes.replies import written_draft
from nodes.review import changes_told, is_looked_at
from nodes.run_faults import found_in
from nodes.state import AgentState, Drafted, Planning
from plans.decisions import ABOUT_PLAN
from plans.faults import Fault, errors_among
from plans.lint import build_plan
from plans.plan import MODEL_SOURCES, SCHEMA_VERSION, Plan, PlanDraft

if TYPE_CHECKING:
    from nodes.session import Session


async def validate(state: AgentState, session: Session) -> dict[str, Any]:
    """Ready, or back to whoever wrote the draft while tries are left, or an honest end."""
    drafted = state.get("drafted") or Drafted()
    planning = state.get("planning") or Planning()
    if (before := await _decided_before(state, session, planning)) is not None:
        return before
    if drafted.schema_version != SCHEMA_VERSION:  # by a worker of another version: its author writes it down anew
        return {"drafted": None, "faults": [], "edge": "repatch" if planning.purpose == "local" else "redraft"}
    drafted = _with_kept_steps(session, drafted)
    found = await found_in(session, drafted, planning)
    faults = [*drafted.faults, *of_the_part(session, planning, found)]
    errors = errors_among(faults)
    if drafted.draft is not None and not errors:
        await _store(session, drafted, drafted.draft, planning, faults)
        return _ready(faults)
    settle(session)
    await keep_draft(session, drafted, planning, errors)
    again = await next_rung(session, drafted, planning, errors)
    # without a limit in its way a step has failed, not the run
    if again["edge"] == "give_up" and planning.purpose == "subgoal" and not session.fold.hits:
        await given_up(session, planning, errors)
        return _ready([])
    return {"drafted": None, "faults": faults, **again}


async def _decided_before(state: AgentState, session: Session, planning: Planning) -> dict[str, Any] | None:
    """Where the run goes when there is no draft to judge: it ends, a person has written the plan, or the process died
    after the decision. None where a draft waits."""
    if session.cancelled or session.fold.hits:
        return {"drafted": None, "faults": [], "edge": "give_up"}
    if session.fold.is_edited:
        return _ready(await revise(session))
    if is_answered(session, planning):
        return _ready([])
    if session.fold.plan is None and is_refused(session):
        return {"drafted": None, "edge": "give_up"}
    if planning.by_template and state.get("drafted") is None:  # none fits: what was wrong with the model's plan stands
        return await next_rung(session, Drafted(), planning, errors_among(state.get("faults") or []))
    return None


def _ready(faults: list[Fault]) -> dict[str, Any]:
    return {"drafted": None, "faults": faults, "planning": Planning(), "edge": "ready"}


async def revise(session: Session) -> list[Fault]:
    """Make people's edits the next revision. One that cannot be a plan is not used, and its step asks anew."""
    if session.fold.rewritten is not None:
        return await _rewrite(session, session.fold.rewritten)
    drafted = Drafted(
        draft=edited_draft(session.plan, session.fold.edits), source="human", template=session.plan.template
    )
    draft = drafted.draft or session.plan.draft
    faults = await found_in(session, drafted.model_copy(update={"draft": draft}), Planning())
    if errors := errors_among(faults):
        await keep_draft(session, drafted, Planning(), errors)
        session.emit(Event(kind="notice", message=f"the edit is not used: {'; '.join(map(str, errors))}"))
    elif draft != session.plan.draft:
        await _store(session, drafted, draft, Planning(), faults)
    for unit in list(session.fold.edits):  # not used, or no change at all
        await session.record("edit_dropped", unit, body={})
        session.scheduling().moved(unit)
    return faults


async def _rewrite(session: Session, rewritten: Mapping[str, Any]) -> list[Fault]:
    """Make the plan that a person has written in answer to a question the next revision; else the question stays."""
    asked = rewritten["asked"]
    draft = written_draft(asked, rewritten["plan"])
    draft = keeping(session.fold.kept(), draft.model_copy(update={"goal": session.head.goal}))
    planning = Planning(purpose="first", step_id=asked.get("step"), refused=draft)
    drafted = Drafted(draft=draft, source="human")
    faults = await found_in(session, drafted, planning)
    if errors := errors_among(faults):
        session.emit(Event(kind="notice", message=f"the plan is not used: {'; '.join(map(str, errors))}"))
        if session.fold.in_review is None:  # else the plan that is there is shown once more
            await ask_about_plan(session, planning, errors)
        await session.record("edit_dropped", ABOUT_PLAN, body={})
    else:
        await _store(session, drafted, draft, planning, faults)
    return faults


def _with_kept_steps(session: Session, drafted: Drafted) -> Drafted:
    """A plan written anew, with what has finished since its author looked."""
    if drafted.source not in ("global_replan", "degraded") or drafted.draft is None or session.fold.plan is None:
        return drafted
    missing = {step.id for step in session.fold.kept()} - {step.id for step in drafted.draft.steps}
    since = [step for step in session.plan.draft.steps if step.id in missing]
    if not since:
        return drafted
    return drafted.model_copy(
        update={"draft": drafted.draft.model_copy(update={"steps": (*since, *drafted.draft.steps)})}
    )


def stored_draft(session: Session) -> Drafted:
    """The current revision, as the draft it was made of."""
    plan = session.plan
    return Drafted(draft=plan.draft, source=plan.source, template=plan.template)


async def _store(session: Session, drafted: Drafted, draft: PlanDraft, planning: Planning, faults: list[Fault]) -> None:
    before = session.fold.plan
    is_part = planning.purpose == "subgoal" and before is not None
    plan = build_plan(
        draft,
        session.engine.registry,
        plan_id=before.plan_id if before else uuid4().hex[:12],
        revision=session.fold.next_revision,
        source=drafted.source,
        template=before.template if is_part and before else drafted.template,
    )
    swayed: frozenset[str] = frozenset()
    if _had_a_say(session, drafted, planning):
        words = None if planning.instruction is None else spoken(session)
        charter = charter_of(session.fold, session.engine.registry, words=words, part=is_part)
        if before is not None and not charter.exposed and only_asks(before.steps, session.engine.registry):
            charter = replace(charter, before=None)  # its author has asked instead of planning: this is the first plan
        plan, swayed = within(plan, session.engine.registry, charter)
    versions = session.engine.options.plan_versions
    on = session.fold.contract or versions.of_run(session.head_run_id)
    body = {
        **versions.written(plan.model_dump(mode="json"), on),
        "purpose": planning.purpose,
        "parent": before.revision if before else None,
        "answers": [planning.trigger] if planning.trigger else [],
        "made_from": drafted.made_from.model_dump() if drafted.made_from and not is_part else None,
        **({"subgoal": planning.step_id} if is_part else {}),
        **({"swayed": sorted(swayed)} if swayed else {}),
        "prompt_sha256": drafted.prompt_sha256,
        "model": drafted.model,
        "mode": drafted.mode,
        "repaired": drafted.repaired,
        "warnings": [fault.model_dump() for fault in faults],
        **({"review": True} if is_looked_at(session.fold, drafted.source) else {}),
        **({} if is_part else promises(drafted.on_exhausted, versions, critical=drafted.critical)),
    }
    await keep_draft(session, drafted, planning, [])
    questions = _outdated(session, before, plan)
    if before is not None:
        session.scheduling().replaced_by(plan)
    await session.record("plan", body=body)
    reached("plan.queued")
    await session.engine.approvals.withdraw(questions)
    if questions:
        await take_decisions(session)  # a no that came before they were taken back
    settle(session)
    await session.flush()  # nobody is shown a plan that a crash could take back
    session.emit(Event(kind="plan", message=plan.source, plan=plan.model_dump(mode="json")))
    if changed := changes_told(session.fold):
        session.emit(Event(kind="notice", message=changed))


def spoken(session: Session) -> str:
    """All that the person has said in this run: the goal, the inputs that are theirs, and what came later."""
    theirs = {name: value for name, value in session.head.inputs.items() if name not in session.head.untrusted}
    return f"{session.full_goal}\n{json.dumps(theirs, ensure_ascii=False)}"


def _had_a_say(session: Session, drafted: Drafted, planning: Planning) -> bool:
    """Whether a model, or a result, had a say in a plan: has written it, filled its template, or chosen the words for
    which a template was found."""
    chosen = planning.purpose == "subgoal" and not is_a_person_s(session, planning.step_id or "")
    return drafted.source in MODEL_SOURCES or drafted.model is not None or chosen


def _outdated(session: Session, before: Plan | None, plan: Plan) -> list[str]:
    """Questions about a step that is gone, or is another step now: they are not asked any more."""
    now = {step.id: step for step in plan.steps}
    changed = {step.id for step in before.steps if now.get(step.id) != step} if before else set()
    return [approval_id for approval_id, request in session.fold.asked.items() if outdated(request, changed)]
