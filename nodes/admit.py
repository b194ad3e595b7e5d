"""May this step start now? One pure function, asked at every start of a step, wherever it is in the plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nodes.fitting import unfit
from nodes.fold import RunFold
from nodes.missing import without
from nodes.reasons import ruled_on, strange_in, unanswered, why_ask
from nodes.rejection import is_rejected
from nodes.step_run import StepRun
from nodes.stopping import circle_hit, start_hit
from plans.caps import Hit
from plans.expressions import InvalidExpression, holds, names_read
from plans.failure import Failure
from plans.plan import Risk, Step, highest_risk
from plans.policy import NO_TERMS, Terms
from plans.references import UnresolvedReference, resolve
from plans.values import JSON, sha256_of
from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when a step asks to start. `named` holds the values of its dependencies, inputs and item;
    `missing` the dependencies that gave none; `absent` why there is no tool, where that is known; `starting`, by name,
    the effects that step runs are about to have; `elapsed_s` is the wall time the run has used, `under_way` the
    attempts of other step runs that have begun and not ended; `doubt` why nobody knows whether the plan still holds,
    where that is a person's to decide."""

    unit: str
    named: Mapping[str, JSON]
    missing: tuple[str, ...] = ()
    tool: Tool | None = None
    absent: str | None = None
    role: str | None = None
    elapsed_s: float = 0.0
    starting: Mapping[str, str] = field(default_factory=dict)
    under_way: int = 0
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """It may: with these arguments. `call` names tool and arguments, `key` is the idempotency key, `effect` names what
    it does to the world (None: nothing), `missing` whose results it runs without."""

    args: dict[str, JSON]
    call: str
    key: str
    effect: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say so first, on these terms; `rule` names the rule of the policy that asks, if one does."""

    args: dict[str, JSON]
    call: str
    risk: Risk
    reason: str
    terms: Terms = NO_TERMS
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """It may not: it fails without a call. `hit` is the limit in its way, if it is one."""

    failure: Failure
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """It need not: its condition is false (then it is `unneeded`), or what it needs is not there."""

    reason: str
    unneeded: bool = False


Admission = Run | Ask | Refuse | Skip


class _Refused(Exception):
    def __init__(self, code: str, message: str, hit: Hit | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hit = hit


def admit(step: Step, fold: RunFold, facts: Facts) -> Admission:
    """Wanted, enabled, permitted, its precondition, its arguments, its tool's rules, the run's limits, not rejected, no
    repetition, the policy, no stranger's arguments, approved: in this order."""
    run = fold.steps.get(facts.unit, StepRun())
    try:
        if (unwanted := _unwanted(step, facts)) is not None:
            return unwanted
        _not_refused_already(run)
        _enabled_and_permitted(step, facts, run)
        _required(step, facts)
        args = _arguments(step, run, facts)
        _unless(start_hit(fold, facts.elapsed_s, facts.under_way))
        return _allowed(step, fold, facts, args)
    except _Refused as refused:
        return _refuse(step, run, facts, refused)


def may_expand(step: Step, fold: RunFold, facts: Facts) -> Refuse | Skip | None:
    """What keeps a `for_each` step from becoming its children, or None. Each child asks for itself afterwards, and a
    condition that reads `item` is the children's alone."""
    run = fold.steps.get(facts.unit, StepRun())
    try:
        if (unwanted := _unwanted(step, facts)) is not None:
            return unwanted
        _required(step, facts)
        _unless(start_hit(fold, facts.elapsed_s, facts.under_way))
    except _Refused as refused:
        return _refuse(step, run, facts, refused)
    return None


def _unwanted(step: Step, facts: Facts) -> Skip | None:
    if facts.missing and step.on_dependency_failure != "degrade":
        return Skip(f"needs {', '.join(facts.missing)}, which gave no result{_hint(step, facts.missing)}")
    if _applies(step.when, step, facts) and not _holds("when", step.when or "", facts):
        return Skip(f"its condition is false: {step.when}", unneeded=True)
    return None


def _hint(step: Step, missing: Collection[str]) -> str:
    """What to do where a step was to look by itself whether there is a result."""
    try:
        asks = step.when is not None and not names_read(step.when).isdisjoint(missing)
    except InvalidExpression:
        return ""
    return "; its condition reads that only with on_dependency_failure: degrade, as null" if asks else ""


def _required(step: Step, facts: Facts) -> None:
    if _applies(step.requires, step, facts) and not _holds("requires", step.requires or "", facts):
        raise _Refused("PRECONDITION_FAILED", f"the precondition of {step.id} does not hold: {step.requires}")


def _applies(condition: str | None, step: Step, facts: Facts) -> bool:
    """Whether there is a condition, and it is this step run's: one that reads `item` is not a `for_each` step's own."""
    if condition is None or step.for_each is None or facts.unit != step.id:
        return condition is not None
    try:
        return "item" not in names_read(condition)
    except InvalidExpression:
        return True


def _refuse(step: Step, run: StepRun, facts: Facts, refused: _Refused) -> Refuse:
    return Refuse(
        Failure(
            code=refused.code,
            message=str(refused),
            step_id=facts.unit,
            tool=run.tool or step.tool,
            attempt=run.attempt + 1,
        ),
        refused.hit,
    )


def call_name(tool: str, args: Mapping[str, JSON]) -> str:
    """Names a call by tool and canonical arguments; what a rejection and a repetition are about."""
    return f"{tool}|{sha256_of(dict(args))}"


def effect_name(tool: Tool, args: Mapping[str, JSON]) -> str:
    """Names an effect by tool and identity arguments, so that a reworded e-mail is still the same e-mail."""
    identity = tool.spec.identity_args
    return call_name(tool.name, {name: args[name] for name in identity if name in args} if identity else args)


def idempotency_key(run_id: str, unit: str, tool: str, args: Mapping[str, JSON]) -> str:
    """Derived from run, step, tool and canonical resolved arguments: a retry keeps it, changed arguments change it."""
    return sha256_of([run_id, unit, tool, dict(args)])[:40]


def _not_refused_already(run: StepRun) -> None:
    """A fallback may be a code to end with, or an alternative whose arguments cannot be made."""
    if run.stand_in is not None and run.stand_in.refused is not None:
        raise _Refused(*run.stand_in.refused)


def _enabled_and_permitted(step: Step, facts: Facts, run: StepRun) -> None:
    """Whether the tool may answer now. A mock needs no tool that is switched on; what one has given before it was
    switched off is as little wanted as what it would give now."""
    if step.action != "tool":
        return
    name = run.tool or step.tool
    if facts.tool is None:
        why = f": {facts.absent}" if facts.absent else ""
        raise _Refused("TOOL_DISABLED", f"the tool {name!r} is not registered here{why}")
    if run.stand_in is None or run.stand_in.kind != "mock":
        _switched_on(facts.tool)
    if facts.tool.spec.roles and facts.role not in facts.tool.spec.roles:
        raise _Refused("NOT_PERMITTED", f"the tool {name!r} is for {', '.join(facts.tool.spec.roles)} only")


def _switched_on(tool: Tool) -> None:
    if tool.to_configure is not None:
        raise _Refused("TOOL_DISABLED", f"the tool {tool.name!r} cannot be called yet: {tool.to_configure}")
    if not tool.enabled:
        raise _Refused("TOOL_DISABLED", f"the tool {tool.name!r} is switched off (surestep tools enable {tool.name})")


def _holds(what: str, expression: str, facts: Facts) -> bool:
    try:
        return holds(expression, dict(facts.named))
    except InvalidExpression as error:
        raise _Refused("PRECONDITION_FAILED", f"{what}: {error}") from None


def _arguments(step: Step, run: StepRun, facts: Facts) -> dict[str, JSON]:
    if step.action == "plan":  # what it gives is made of its steps' results when they are there, not of arguments
        args = {}
    elif run.args is not None:
        args = run.args
    else:
        try:
            args = resolve(without(step.args, facts.missing), facts.named.__getitem__)
        except UnresolvedReference as error:
            raise _Refused("UNRESOLVED_REFERENCE", str(error)) from None
    if facts.tool is not None and (wrong := unfit(facts.tool, args)) is not None:
        raise _Refused(*wrong)
    return args


def _unless(hit: Hit | None) -> None:
    if hit is not None:
        raise _Refused(hit.code, hit.message, hit)


def _allowed(step: Step, fold: RunFold, facts: Facts, args: dict[str, JSON]) -> Admission:
    tool = facts.tool
    name = tool.name if tool else step.action
    shown = args if tool else {"instruction": step.instruction, **args}
    _unless(circle_hit(fold, facts.tool, args))
    call = call_name(name, shown)
    if is_rejected(fold, call, tool, name, shown):
        raise _Refused("REJECTED", f"a person has rejected this call of {name}")
    effect = effect_name(tool, args) if tool is not None and tool.effect != "read" else None
    ruled = ruled_on(step, fold, facts, args)
    if ruled.then == "deny":
        raise _Refused("NOT_PERMITTED", ruled.why)
    strange = strange_in(step, fold, facts, args)
    risk = highest_risk(ruled.risk, "high" if strange else None)
    reason = why_ask(step, fold, facts, effect, ruled, strange)
    if reason is not None and (again := unanswered(fold, f"{facts.unit}|{call}", ruled)) is not None:
        if ruled.terms is None:
            raise _Refused("NOT_PERMITTED", f"{reason}, and by all policies of the run together nobody may decide that")
        return Ask(shown, call, risk, f"{reason}{again}", ruled.terms, ruled.rule)
    key = idempotency_key(fold.head.run_id if fold.head else "", facts.unit, name, args)
    return Run(args, call, key, effect, facts.missing)
