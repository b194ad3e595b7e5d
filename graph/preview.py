"""Plans that do not run: the preview of a goal's plan, and what could never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graph.result import PlanPreview
from nodes.capabilities import beyond_first
from nodes.given import rejected
from nodes.ladder import NOT_WORTH_ASKING_AGAIN
from nodes.model_errors import ModelFailed
from nodes.offered import allowed, examples, offered, prompt_inputs
from nodes.plan import NO_PLANNER
from nodes.planner import draft_plan
from nodes.policing import actor_of, denied_steps, policies_now, ruling_before
from nodes.run_faults import may_use, refused_now, tool_faults
from nodes.secret_faults import secret_faults
from nodes.state import RunHead
from nodes.template_choice import from_template, near_template, why_aside
from nodes.template_filler import fill_by_model
from nodes.templates import Filled
from nodes.tools_now import tools_of
from nodes.verify_when import most_questions
from plans.errors import InvalidInput, ModelNotConfigured
from plans.faults import Fault, errors_among
from plans.lint import build_plan, lint
from plans.plan import MODEL_SOURCES, Plan, PlanDraft, Source, Step
from plans.schedule import dependents_of, edges_of, remaining_path
from tools.breaker import open_tools
from tools.person import asks_user

if TYPE_CHECKING:
    from nodes.engine import Engine


async def check_plannable(engine: Engine, head: RunHead) -> None:
    """Refuse, before anything is stored, what could never run: faults of a given plan, a goal that nothing can plan, a
    limit of cost that nobody could keep, a judgement without a model.

    Raises PlanRejected with all faults, InvalidInput, or ModelNotConfigured.
    """
    await _without_a_model(engine, head)


class _Drafted(NamedTuple):
    draft: PlanDraft
    source: Source
    template: str | None = None
    by_model: bool = False


async def _without_a_model(engine: Engine, head: RunHead) -> _Drafted | None:
    """The plan that no model has to write, judged; None where one has to. Raises as `check_plannable`."""
    _check_prices(engine, head)
    known: _Drafted | None = None
    if head.given_plan is not None:
        known = _Drafted(head.given_plan, "file")
    elif (chosen := await from_template(engine, head, head.goal, head.template)) is not None:
        known = _Drafted(chosen.draft, "template", chosen.template.name)
    elif engine.planner is None and await near_template(engine, head) is None:
        raise ModelNotConfigured(why_aside(engine, head) or NO_PLANNER)
    if known is None:
        return None
    if errors := errors_among(await _lint(engine, known.draft, head)):
        raise rejected(errors)
    if engine.small is None:
        _check_judgements(known.draft)
    return known


def _check_judgements(draft: PlanDraft) -> None:
    """A judgement that nothing can do without ends the run when it is reached, after all that was done before it."""
    known = {step.id: step for step in draft.steps}
    readers = dependents_of(edges_of(draft.steps))
    for step in draft.steps:
        reading = [known[each] for each in readers[step.id]]
        spared = reading and all(each.on_dependency_failure != "abort" for each in reading)
        if step.action == "llm" and step.when is None and not spared:
            raise ModelNotConfigured(
                f"the step {step.id} is a judgement (action: llm), and no model is configured; nothing was begun. Set "
                "SURESTEP_SMALL_MODEL or SURESTEP_MODEL (and OPENAI_BASE_URL, OPENAI_API_KEY)"
            )


def _check_prices(engine: Engine, head: RunHead) -> None:
    """A model without a price costs nothing, and a limit of cost would never be reached."""
    for model in engine.models:
        if head.limits.max_cost is not None and model.settings.price is None:
            name = model.settings.model
            raise InvalidInput(
                f"the limit max_cost cannot be kept: nobody has said what the model {name!r} costs. Set "
                f"SURESTEP_PRICES={name}=PROMPT/COMPLETION, per million tokens (0/0 if it is free), or use max_tokens"
            )


async def preview(engine: Engine, head: RunHead) -> PlanPreview:
    """The plan a run of this head would follow, with what it will ask and cost."""
    known = await _without_a_model(engine, head)
    draft, source, template, by_model = known or await _asked_for(engine, head)
    plan = build_plan(draft, engine.registry, plan_id="preview", revision=1, source=source, template=template)
    if by_model:
        plan = beyond_first(plan, engine.registry)
    asks = tuple([step.id for step in plan.steps if await _asks(engine, step, head)])
    found = await _lint(engine, draft, head, by_model=by_model)
    warnings = [fault for fault in found if fault.severity == "warning"]
    return PlanPreview(plan=plan, approvals=asks, warnings=tuple(warnings), estimate=_estimate(engine, plan))


async def _asks(engine: Engine, step: Step, head: RunHead) -> bool:
    """Whether a person may have to say something to a step. What its references will be is not known yet."""
    tool = engine.registry.get(step.tool or "")
    if asks_user(tool):
        return True
    policies = await policies_now(engine.options.policy)
    said = ruling_before(policies, tool, step, actor_of(head)) if tool is not None else None
    if said is None or said.then == "silent":
        return step.require_approval or step.risk == "high" or (said is not None and said.risk == "high")
    return step.require_approval or said.then == "ask"


async def _asked_for(engine: Engine, head: RunHead) -> _Drafted:
    if (filled := await _by_small_model(engine, head)) is not None:
        return _Drafted(filled.draft, "template", filled.template.name, by_model=True)
    return _Drafted(await _from_model(engine, head), "model", by_model=True)


async def _by_small_model(engine: Engine, head: RunHead) -> Filled | None:
    """A template that is near, filled by the small model if there is one."""
    inputs = prompt_inputs(head)
    template = await near_template(engine, head)
    if template is None or engine.small is None:
        return None
    try:
        filled = (await fill_by_model(engine.small, template, head.goal, inputs)).filled
    except ModelFailed:
        return None
    if filled is None or errors_among(await _lint(engine, filled.draft, head, by_model=True)):
        return None
    return filled


async def _from_model(engine: Engine, head: RunHead) -> PlanDraft:
    """As the graph does it: one question, and its faults back to the model while tries are left."""
    if engine.planner is None:
        raise ModelNotConfigured(NO_PLANNER)
    faults: list[Fault] = []
    inputs, policies = prompt_inputs(head), await policies_now(engine.options.policy)
    tools = allowed(policies, await offered(await tools_of(engine), head.role, engine.ports), head)
    told: dict[str, Any] = {
        "few_shots": examples(engine.registry, tools),
        "budget": engine.planner.settings.prompt_tokens,
        "subgoals": head.limits.max_subgoal_depth > 0,
        "secrets": tuple(engine.secret_names),
    }
    for _ in range(head.limits.max_redrafts + 1):
        asked = await draft_plan(engine.planner, head.goal, inputs, tools, faults=faults, **told)
        draft = asked.reading.draft
        found = await _lint(engine, draft, head, by_model=True) if draft is not None else []
        faults = errors_among([*asked.reading.faults, *found])
        if draft is not None and not faults:
            return draft.model_copy(update={"goal": head.goal})
        if any(fault.code in NOT_WORTH_ASKING_AGAIN for fault in faults):
            break
    raise rejected(faults)


def _estimate(engine: Engine, plan: Plan) -> dict[str, float]:
    def longest(step_id: str) -> float:
        step = plan.step(step_id)
        tool = engine.registry.get(step.tool or "")
        return step.timeout_s or (tool.spec.timeout_s if tool else 60.0)

    edges = edges_of(plan.steps)
    before_effects = engine.verifier is not None or plan.source in MODEL_SOURCES
    checks = most_questions(plan, engine.registry, before_effects=before_effects) if engine.checking else 0
    return {
        "steps": float(len(plan.steps)),
        "critical_path_steps": max(remaining_path(edges).values()),
        "at_most_s": round(max(remaining_path(edges, longest).values()), 1),
        "model_calls": float(sum(step.action != "tool" for step in plan.steps) + checks),
    }


async def _lint(engine: Engine, draft: PlanDraft, head: RunHead, *, by_model: bool = False) -> list[Fault]:
    """As the run's own check, with the tools as they are now."""
    tools, steps = await tools_of(engine), {step.id: step for step in draft.steps}
    names = tuple(head.input_values())
    found = lint(draft, tools, inputs=names, limits=head.limits, role_permits=may_use(head.role))
    found += denied_steps(await policies_now(engine.options.policy), draft.steps, tools, actor_of(head))
    found = tool_faults(found, tools, steps, by_model=by_model)
    found += secret_faults(draft.steps, tools, {"inputs": head.input_values(), "secrets": engine.secret_names})
    return [*found, *(refused_now(draft.steps, await open_tools(tools, engine.ports)) if by_model else ())]
