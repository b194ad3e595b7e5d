"""plan: writes a draft. A given plan, else a template, else a model; again for a global replan or a refused draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.catalog import in_our_words
from nodes.events import Event
from nodes.journaled_model import JournaledModel
from nodes.ladder import is_answered, is_refused, wanted
from nodes.listening import reading_ahead
from nodes.model_errors import ModelFailed
from nodes.offered import examples, finished_steps, offered_tools, prompt_inputs
from nodes.part import depth_left, in_whole, question, told
from nodes.planner import PLANNER, draft_plan, keeping
from nodes.state import AgentState, Drafted, Planning
from nodes.step_run import base_id
from nodes.template_choice import drafted_from, from_near_template, from_template, in_use, is_aside
from nodes.template_near import near
from nodes.templates import Template
from nodes.validate import stored_draft
from plans.errors import ModelNotConfigured, UsageError
from plans.failure import Failure
from plans.faults import Fault
from plans.plan import Source

if TYPE_CHECKING:
    from nodes.session import Session

NO_PLANNER = (
    "no template matches this goal and no model is configured. Set SURESTEP_MODEL (and OPENAI_BASE_URL, "
    "OPENAI_API_KEY) in the environment or surestep.toml, give a plan with --plan, or use a template "
    "(`surestep templates` lists them)."
)


async def plan(state: AgentState, session: Session) -> dict[str, Any]:
    """A draft for `validate`, or none for a run that is to end. Entered again for a known run it gives the plan that is
    recorded, and resets nothing."""
    drafted: Drafted | None
    planning = wanted(session, state.get("planning") or Planning())
    if session.cancelled or (session.fold.plan is None and is_refused(session)):
        drafted = None
    elif is_answered(session, planning):
        drafted = stored_draft(session) if session.fold.plan is not None else None
    elif planning.purpose == "degraded":
        drafted = _simpler(session)
    elif planning.purpose == "subgoal":
        drafted = await _part(session, planning, state.get("faults") or [])
    elif planning.purpose == "global":
        source: Source = "global_replan" if session.fold.plan is not None else "model"
        drafted = await _from_model(session, planning, source, state.get("faults") or [])
    elif planning.by_template:
        drafted = await less_strictly(session)
    else:
        drafted = await _first(session, planning, state.get("faults") or [])
    return {"drafted": drafted, "planning": planning, "status": "running"}


async def _first(session: Session, planning: Planning, faults: list[Fault]) -> Drafted:
    head = session.head
    if head.given_plan is not None:
        return Drafted(draft=head.given_plan, source="file")
    try:
        chosen = await from_template(session.engine, head, head.goal, head.template)
        if chosen is not None:
            await _say_if_aside(session, chosen.template)
            return drafted_from(chosen)
    except UsageError as error:
        return Drafted(source="template", faults=(Fault(code="INVALID_INPUT", message=str(error)),))
    if planning.tries == 0:
        near = await from_near_template(session)
        if near is not None:
            return near
    return await _from_model(session, planning, "model", faults)


async def _say_if_aside(session: Session, template: Template) -> None:
    if await is_aside(session.engine, template):
        again = f"`surestep templates restore {template.name}` has it matched again"
        session.emit(Event(kind="notice", message=f"the template {template.name} is set aside: it has failed; {again}"))


async def _part(session: Session, planning: Planning, faults: list[Fault]) -> Drafted:
    """The plan of a sub-goal, in the whole: by a template that does what it asks, else by the model."""
    chosen, goal = None, session.fold.reached[planning.step_id or ""]
    try:
        if planning.tries == 0:
            chosen = await from_template(session.engine, session.head, goal)
    except UsageError as error:
        if session.engine.planner is None:
            return Drafted(source="template", faults=(Fault(code="INVALID_INPUT", message=str(error)),))
    drafted = drafted_from(chosen) if chosen else await _from_model(session, planning, "model", faults)
    return in_whole(session, planning, drafted)


async def less_strictly(session: Session) -> Drafted | None:
    """The draft of a template that fits the goal less strictly than a match does, where no model could plan it."""
    head, engine = session.head, session.engine
    found = near(head.goal, prompt_inputs(head), await in_use(engine, head.tenant), tools=engine.registry)
    return drafted_from(found) if found is not None else None


def _simpler(session: Session) -> Drafted:
    """What the run's template says to do when nothing mends its plan, around what is finished."""
    simpler = session.fold.on_exhausted
    if simpler is None:
        raise AssertionError("a simplified plan was decided on, and the run's template has none")
    kept = session.fold.kept()
    ids = {step.id for step in kept}
    steps = (*kept, *(step for step in simpler.steps if step.id not in ids))
    return Drafted(draft=simpler.model_copy(update={"steps": steps}), source="degraded", template=session.plan.template)


async def _from_model(session: Session, planning: Planning, source: Source, faults: list[Fault]) -> Drafted:
    model = session.engine.planner
    if model is None:
        return Drafted(source=source, faults=(Fault(code="MODEL_NOT_CONFIGURED", message=NO_PLANNER),))
    revision = session.fold.plan.revision if session.fold.plan else 0
    key = f"plan:{planning.purpose}:{revision}:{planning.trigger}:{planning.tries}"
    part = None
    if planning.purpose == "subgoal":
        key, part = question(session, planning), await told(session, session.step(planning.step_id or ""))
    try:
        offered = await offered_tools(session)
        finished = await finished_steps(session)
        with reading_ahead(session, offered):
            answer = await draft_plan(
                JournaledModel(session, model, key),
                _goal(session, planning),
                prompt_inputs(session.head),
                offered,
                few_shots=examples(session.engine.registry, offered),
                faults=faults,
                finished=finished,
                failure=_failure(session, planning),
                budget=model.settings.prompt_tokens,
                part=part,
                subgoals=depth_left(session, planning) > 0,
                secrets=tuple(session.engine.secret_names),
            )
    except (ModelFailed, ModelNotConfigured) as error:
        fault = Fault(code="MODEL_FAILED", message=str(error))
        return Drafted(
            source=source, model=model.settings.model, prompt_sha256=PLANNER.sha256, question=key, faults=(fault,)
        )
    draft = answer.reading.draft
    if draft is not None and part is None:
        draft = keeping(session.fold.kept(), draft.model_copy(update={"goal": session.head.goal}))
    return Drafted(
        draft=draft,
        source=source,
        repaired=answer.reading.repaired,
        prompt_sha256=answer.prompt_sha256,
        model=answer.answer.model,
        mode=answer.answer.mode,
        question=key,
        faults=answer.reading.faults,
    )


def _goal(session: Session, planning: Planning) -> str:
    """The goal with the instructions that came later; or the sub-goal, as it is written."""
    if planning.purpose == "subgoal":
        return session.step(planning.step_id or "").instruction or ""
    return session.full_goal


def _failure(session: Session, planning: Planning) -> Failure | None:
    if planning.step_id is None:
        asking = next((verdict for verdict in session.fold.queue if verdict.key == planning.trigger), None)
        return Failure(code=asking.code, message=asking.reason) if asking and asking.code != "ANSWERED" else None
    run = session.fold.steps.get(planning.step_id) or session.fold.steps.get(base_id(planning.step_id))
    failure = run.failure if run else None
    return failure and in_our_words(failure, session.engine.registry.get(failure.tool or ""))
