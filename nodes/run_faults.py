"""What is wrong with a draft that only its run can tell: what has run, what was tried in vain, which effects there
were, which tools answer now, and what is left of the run's limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.admit import effect_name
from nodes.clarify import not_to_ask
from nodes.drafts import drafted_name
from nodes.policing import actor_of, denied_steps
from nodes.secret_faults import secret_faults
from nodes.state import Drafted, Planning
from nodes.step_run import base_id
from nodes.stopping import infeasible, limits_of
from nodes.tools_now import current_tools
from plans.caps import repeat_hit
from plans.faults import Fault, errors_among
from plans.limits import Limits
from plans.lint import Permits, lint
from plans.lint_limits import MODEL_CALL_S
from plans.moves import SETTLED
from plans.plan import MODEL_SOURCES, PlanDraft, StepDraft
from plans.references import UnresolvedReference, references_in, resolve
from plans.sameness import draft_name, same_call, step_names
from plans.schedule import cycle_in, edges_of, remaining_path
from plans.subgoals import is_planned
from plans.values import JSON
from tools.breaker import open_tools
from tools.permission import permitted
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.fold import RunFold
    from nodes.session import Session

ABOUT_TOOLS = frozenset({"TOOL_UNAVAILABLE", "NOT_PERMITTED", "UNKNOWN_TOOL"})
FROM_OUTSIDE = ("NEW_INSTRUCTION", "INPUT_CHANGED", "ANSWERED")
"""Reasons to plan anew that say nothing against the plan as it is."""


async def found_in(session: Session, drafted: Drafted, planning: Planning) -> list[Fault]:
    """Every fault of a draft, errors and warnings."""
    draft, fold = drafted.draft, session.fold
    if draft is None:
        return []
    tools = await current_tools(session)
    by_model = drafted.source in MODEL_SOURCES
    new = new_steps(fold, draft)
    names = tuple(session.head.input_values())
    found = lint(
        draft, tools, inputs=names, limits=left_of(session.head.limits, session.elapsed_s(), first=fold.plan is None),
        role_permits=may_use(session.head.role),
    )  # fmt: skip
    found += denied_steps(fold.policies, draft.steps, tools, actor_of(session.head))
    found = tool_faults(found, tools, {step.id: step for step in new}, by_model=by_model)
    named = {"inputs": session.head.input_values(), "secrets": session.engine.secret_names}
    found += [*changed_steps(fold, draft), *room_faults(fold, draft), *secret_faults(draft.steps, tools, named)]
    if fold.plan is not None and session.head.limits.max_wall_s is not None:
        found += late_end(fold, draft, tools, session.head.limits.max_wall_s - session.elapsed_s())
    if by_model:
        found += refused_now(new, await open_tools(tools, session.engine.ports))
        found += [*made_up(new, planning), *not_to_ask(session, new, tools)]
        found += failed_again(fold, draft, {*(step.id for step in new), base_id(planning.step_id or "")})
    if fold.effects or fold.progress.results:
        for step in new:
            if (tool := tools.get(step.tool or "")) is not None:
                found += call_faults(fold, step, tool, await _calls(session, step), by_model=by_model)
    if by_model:
        found += same_draft(fold, draft, drafted_name(drafted, fold.next_revision), planning, errors_among(found))
    return found


def may_use(role: str | None) -> Permits:
    """Whether a run of this role may use a tool."""
    return lambda tool: not isinstance(tool, Tool) or permitted(tool.spec, role)


def new_steps(fold: RunFold, draft: PlanDraft) -> list[StepDraft]:
    """The steps of a draft that the revision before does not have as they are."""
    before = {step.id: step for step in fold.plan.draft.steps} if fold.plan else {}
    stored = {step.id: step for step in fold.plan.steps} if fold.plan else {}
    return [step for step in draft.steps if step not in (before.get(step.id), stored.get(step.id))]


def left_of(limits: Limits, elapsed_s: float, *, first: bool) -> Limits:
    """The limits that a plan as a whole is held to: the time that is left is that of a first plan; of a later one the
    steps that are finished need none any more."""
    if limits.max_wall_s is None:
        return limits
    left_s = max(0.001, limits.max_wall_s - elapsed_s) if first else None
    return limits.model_copy(update={"max_wall_s": left_s})


def late_end(fold: RunFold, draft: PlanDraft, tools: Mapping[str, Tool], left_s: float) -> list[Fault]:
    """OVER_DEADLINE: the steps that are left in a row may take longer than the run has left."""
    left = [step for step in draft.steps if fold.status(step.id) not in SETTLED]
    steps = {step.id: step for step in left}
    edges = {name: tuple(each for each in needed if each in steps) for name, needed in edges_of(left).items()}

    def most_s(name: str) -> float:
        tool = tools.get(steps[name].tool or "")
        return steps[name].timeout_s or (tool.timeout_s if tool is not None else MODEL_CALL_S)

    longest = 0.0 if cycle_in(edges) else max(remaining_path(edges, most_s).values(), default=0.0)
    if longest <= left_s:
        return []
    message = f"the steps that are left may take {longest:g} s in a row; the run has {max(0.0, left_s):.0f} s left"
    fix = "let steps depend on less, give them a shorter timeout_s, or raise max_wall_s"
    return [Fault(code="OVER_DEADLINE", path="steps", message=message, fix=fix, severity="warning")]


def tool_faults(
    found: Iterable[Fault], tools: Mapping[str, Tool], new: Mapping[str, StepDraft], *, by_model: bool
) -> list[Fault]:
    """Faults of a plan without those about tools of steps that are there already: their run says what becomes of them.
    A tool that cannot be called and has a fallback is no obstacle to a plan whose author had no choice of tools."""
    kept = []
    for fault in found:
        step = new.get(fault.step or "")
        if fault.code in ABOUT_TOOLS and fault.step is not None and step is None:
            continue
        tool = tools.get(step.tool or "") if step else None
        if fault.code == "TOOL_UNAVAILABLE" and not by_model and tool is not None and tool.spec.fallbacks:
            words = f"{fault.message}; its fallback is asked instead"
            kept.append(fault.model_copy(update={"severity": "warning", "message": words}))
        else:
            kept.append(fault)
    return kept


def changed_steps(fold: RunFold, draft: PlanDraft) -> list[Fault]:
    """A step that has run, or runs, is kept as it is; a changed one needs a new id."""
    now = {step.id: step for step in draft.steps}
    kept = {step.id: step for step in fold.plan.draft.steps} if fold.plan else {}
    return [
        Fault(
            code="CHANGED_FINISHED_STEP",
            step=step.id,
            message=f"step {step.id} is {fold.status(step.id)} and must stay as it is",
            fix="keep it unchanged and give the new step another id",
        )
        for step in fold.kept()
        if now.get(step.id) not in (kept[step.id], step)
    ]


def room_faults(fold: RunFold, draft: PlanDraft) -> list[Fault]:
    """A plan that cannot be finished under what is left of the run's limits."""
    limits, found = limits_of(fold), list[Fault]()
    steps = fold.progress.gone + len(draft.steps)
    if steps > limits.max_steps >= len(draft.steps):
        message = f"the plan has {len(draft.steps)} steps, and {fold.progress.gone} steps of earlier revisions have run"
        message, fix = f"{message}; the limit is {limits.max_steps}", "use fewer steps, or raise the limit max_steps"
        found.append(Fault(code="TOO_MANY_STEPS", path="steps", message=message, fix=fix))
    if (hit := infeasible(fold, draft)) is not None:
        fix = "use fewer steps, or raise the limit max_total_attempts"
        found.append(Fault(code="LIMIT_INFEASIBLE", path="steps", message=hit.message, fix=fix))
    return found


def refused_now(new: Iterable[StepDraft], refusing: Collection[str]) -> list[Fault]:
    """New steps whose tool has failed so often of late that it is not called for a while."""
    return [
        Fault(
            code="TOOL_UNAVAILABLE",
            step=step.id,
            message=f"the tool {step.tool!r} fails too often and is not called for now",
            fix="use another tool",
        )
        for step in new
        if step.tool in refusing
    ]


def made_up(new: Iterable[StepDraft], planning: Planning) -> list[Fault]:
    """Sub-goals whose result a model has written into its plan, where no step gives it. What the plan of a sub-goal
    comes to is for its author to say."""
    planned = planning.step_id if planning.purpose == "subgoal" else None
    return [
        Fault(
            code="INVALID_ARGS",
            step=step.id,
            path="args",
            message=f"step {step.id} has action 'plan' and a result that no step gives",
            fix="leave args out: what the step gives comes from its own plan, which is made when it is reached",
        )
        for step in new
        if is_planned(step) and step.id != planned and not list(references_in(step.args))
    ]


def failed_again(fold: RunFold, draft: PlanDraft, among: Collection[str]) -> list[Fault]:
    """Steps among these that do, under whatever id and words, what a step of this run has failed at, on the same."""
    failed = dict(fold.progress.failed)
    if fold.plan is not None:
        now = {
            step.id: run.failure.message
            for step in fold.plan.steps
            if (run := fold.steps.get(step.id)) is not None
            and run.status == "failed"
            and run.failure is not None
            and run.failure.class_ not in ("limit", "policy")
        }
        before = step_names(fold.plan.steps) if now else {}
        failed |= {before[step_id]: f"{step_id}: {why}" for step_id, why in now.items()}
    if not failed:
        return []
    names = step_names(draft.steps)
    fix = "change its tool or its arguments"
    return [
        Fault(code="NO_PROGRESS", step=step.id, message=f"it does what has failed already ({failed[name]})", fix=fix)
        for step in draft.steps
        if (name := names[step.id]) in failed and step.id in among
    ]


def call_faults(
    fold: RunFold, step: StepDraft, tool: Tool, calls: Iterable[Mapping[str, JSON]], *, by_model: bool
) -> list[Fault]:
    """What the calls of a new step would repeat, as far as their arguments are known: an effect that the run has had,
    or may have had; or a call that has led nowhere again and again. A model's plan may repeat an effect only where it
    asks a person; what a person has written asks when it is its turn."""
    limits, revision = limits_of(fold), fold.next_revision
    for args in calls:
        if tool.effect != "read":
            if before := fold.effects.get(effect_name(tool, args)):
                return [
                    Fault(
                        code="REPEATED_EFFECT",
                        step=step.id,
                        message=f"it would repeat what step {before[0]} has done: {tool.name}, with the same arguments",
                        fix="leave it out, or set require_approval: a person then decides whether it happens again",
                        severity="error" if by_model and not step.require_approval else "warning",
                    )
                ]
        elif hit := repeat_hit(limits, tool.name, fold.progress.times(same_call(tool.name, args), revision)):
            return [Fault(code="NO_PROGRESS", step=step.id, message=hit.message, fix="do something else")]
    return []


async def _calls(session: Session, step: StepDraft) -> list[dict[str, JSON]]:
    """The arguments of a step's calls, where all that they are made of is known; for each element of a list."""
    fold = session.fold
    named = {"inputs": session.head.input_values(), "secrets": session.engine.secret_names}
    for reference in references_in([step.args, step.for_each]):
        run = fold.steps.get(reference.name)
        if run is not None and run.output is not None and fold.status(reference.name) == "done":
            named[reference.name] = await session.value(reference.name)
    try:
        if step.for_each is None:
            return [resolve(step.args, named.__getitem__)]
        elements = resolve(step.for_each, named.__getitem__)
        items = elements if isinstance(elements, list) else []
        return [resolve(step.args, {**named, "item": item}.__getitem__) for item in items]
    except (UnresolvedReference, KeyError):
        return []


def same_draft(
    fold: RunFold, draft: PlanDraft, name: str, planning: Planning, errors: Sequence[Fault]
) -> list[Fault]:  # fmt: skip
    """A plan that says in other words what an earlier one of this run did, which was refused, or which has run and
    failed. Where the goal or the inputs have changed since, the same plan may be the right one."""
    first = fold.progress.drafts.get(draft_name(draft), name)
    if first == name or planning.trigger.startswith(FROM_OUTSIDE):
        return []
    refused = not fold.drafts[first]["valid"]
    if refused and not errors:  # what was wrong with it is not so any more
        return []
    how = "was refused before" if refused else "has been tried before"
    return [Fault(code="NO_PROGRESS", message=f"this plan {how}, in other words or the same", fix="plan another way")]
