"""May this step start now? One pure function, asked at every start of a step, wherever it is in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodes.fold import RunFold, StepRun
from plans.expressions import InvalidExpression, holds
from plans.failure import Failure
from plans.plan import Effect, Risk, Step, highest_risk
from plans.references import UnresolvedReference, resolve
from plans.values import JSON, sha256_of
from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when a step asks to start. `named` holds the values of its dependencies, inputs and item;
    `missing` the dependencies that gave none; `elapsed_s` is the wall time the run has used."""

    unit: str
    named: Mapping[str, JSON]
    missing: tuple[str, ...] = ()
    tool: Tool | None = None
    enabled: bool = True
    role: str | None = None
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """It may: with these arguments. `call` names tool and arguments, `key` is the idempotency key."""

    args: dict[str, JSON]
    call: str
    key: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say so first."""

    args: dict[str, JSON]
    call: str
    risk: Risk
    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """It may not: it fails without a call."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Skip:
    """It need not: its condition is false, or what it needs is not there."""

    reason: str


Admission = Run | Ask | Refuse | Skip


class _Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def admit(step: Step, fold: RunFold, facts: Facts) -> Admission:
    """Enabled, permitted, wanted, resolved, within limits, not rejected, not a repetition, approved: in this order."""
    run = fold.steps.get(facts.unit, StepRun())
    if facts.missing and step.on_dependency_failure != "degrade":
        return Skip(f"needs {', '.join(facts.missing)}, which gave no result")
    try:
        if step.when is not None and not _holds("when", step.when, facts):
            return Skip(f"its condition is false: {step.when}")
        _enabled_and_permitted(step, facts, run)
        if step.requires is not None and not _holds("requires", step.requires, facts):
            raise _Refused("PRECONDITION_FAILED", f"the precondition of {step.id} does not hold: {step.requires}")
        args = _arguments(step, run, facts)
        _within_limits(fold, facts)
        return _allowed(step, fold, facts, args)
    except _Refused as refused:
        failure = Failure(
            code=refused.code,
            message=str(refused),
            step_id=facts.unit,
            tool=run.tool or step.tool,
            attempt=run.attempt + 1,
        )
        return Refuse(failure)


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


def _enabled_and_permitted(step: Step, facts: Facts, run: StepRun) -> None:
    if step.action != "tool":
        return
    name = run.tool or step.tool
    if facts.tool is None:
        raise _Refused("TOOL_DISABLED", f"the tool {name!r} is not registered here")
    if not facts.enabled:
        raise _Refused("TOOL_DISABLED", f"the tool {name!r} is switched off (surestep tools enable {name})")
    if facts.tool.spec.roles and facts.role not in facts.tool.spec.roles:
        raise _Refused("NOT_PERMITTED", f"the tool {name!r} is for {', '.join(facts.tool.spec.roles)} only")


def _holds(what: str, expression: str, facts: Facts) -> bool:
    try:
        return holds(expression, dict(facts.named))
    except InvalidExpression as error:
        raise _Refused("PRECONDITION_FAILED", f"{what}: {error}") from None


def _arguments(step: Step, run: StepRun, facts: Facts) -> dict[str, JSON]:
    if run.args is not None:
        args = run.args
    else:
        try:
            args = resolve(step.args, facts.named.__getitem__)
        except UnresolvedReference as error:
            raise _Refused("UNRESOLVED_REFERENCE", str(error)) from None
    if facts.tool is not None and (problems := facts.tool.check_args(args)):
        said = "; ".join(f"{path}: {message}" if path else message for path, message in problems)
        raise _Refused("INVALID_ARGS", f"{facts.tool.name} does not take these arguments: {said}")
    return args


def _within_limits(fold: RunFold, facts: Facts) -> None:
    limits = fold.head.limits if fold.head else None
    if limits is None:
        return
    if limits.max_wall_s is not None and facts.elapsed_s >= limits.max_wall_s:
        raise _Refused("LIMIT_TIME", f"the run has used its {limits.max_wall_s:g} s")
    if limits.max_tokens is not None and fold.usage.tokens >= limits.max_tokens:
        raise _Refused("LIMIT_TOKENS", f"the run has used its {limits.max_tokens} tokens")
    if limits.max_cost is not None and fold.usage.cost >= limits.max_cost:
        raise _Refused("LIMIT_COST", f"the run has used its budget of {limits.max_cost:g}")


def _allowed(step: Step, fold: RunFold, facts: Facts, args: dict[str, JSON]) -> Admission:
    tool = facts.tool
    name = tool.name if tool else step.action
    call = call_name(name, args)
    if call in fold.rejected:
        raise _Refused("REJECTED", f"a person has rejected this call of {name}")
    risk = highest_risk(step.risk, tool.risk if tool else None)
    if reason := _why_ask(step, fold, facts, args, risk):
        action = f"{facts.unit}|{call}"
        decided = fold.decisions.get(action)
        if decided is None:
            return Ask(args, call, risk, reason)
    key = idempotency_key(fold.head.run_id if fold.head else "", facts.unit, name, args)
    return Run(args, call, key)


def _why_ask(step: Step, fold: RunFold, facts: Facts, args: Mapping[str, JSON], risk: Risk) -> str | None:
    tool = facts.tool
    if tool is not None and changes_the_world(tool.effect):
        before = fold.effects.get(effect_name(tool, args))
        if before is not None and before != facts.unit:
            return f"it would repeat what step {before} has done"
    if step.require_approval:
        return "the plan asks for a person's approval"
    if risk == "high":
        return f"{tool.name if tool else step.action} is of high risk"
    return None


def changes_the_world(effect: Effect) -> bool:
    """Whether a tool of this effect must not be called again without thought."""
    return effect != "read"
