"""fallback: a declared alternative takes the failed call's place, as an attempt that asks to start like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.attempt import named_values
from nodes.missing import without
from nodes.state import AgentState, Verdict
from nodes.step_run import base_id
from plans.expressions import InvalidExpression, finds_null, search
from plans.references import UnresolvedReference, resolve
from plans.values import JSON
from tools.fallbacks import Fallback, labelled

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.tool import Tool


class Unmapped(Exception):
    """The alternative's arguments cannot be made from those of the failed call; the text says which, and why."""


async def fallback(state: AgentState, session: Session) -> dict[str, Any]:
    """Apply every fallback verdict that waits; the result will say where it came from."""
    waiting = [verdict for verdict in session.fold.queue if verdict.verdict == "fallback"]
    for verdict in waiting:
        await _apply(session, verdict)
    return {}


async def _apply(session: Session, verdict: Verdict) -> None:
    unit, label = verdict.step_id, verdict.alternative or ""
    step = session.step(base_id(unit))
    tool = session.engine.registry[step.tool or ""]
    declared = labelled(tool.spec.fallbacks).get(label)
    body: dict[str, Any] = {"alternative": label, "tool": None}
    if declared is None:
        said = f"the fallback {label!r} of {tool.name} is not declared any more"
        body |= {"kind": "code", "refused": {"code": "TOOL_DISABLED", "message": said}}
    else:
        body |= await _body(session, verdict, tool, declared)
    await session.record("fallback", unit, verdict.attempt, body=body)
    session.scheduling().moved(unit)


async def _body(session: Session, verdict: Verdict, tool: Tool, declared: Fallback) -> dict[str, Any]:
    """What the row says beside the fallback's name: how the next attempt is answered."""
    because = f"because {tool.name} failed: {verdict.reason}"
    match declared.kind:
        case "cached":
            return {"kind": "cached", "at_most_s": declared.cached, "because": because}
        case "mock":
            return {"kind": "mock", "degraded": f"answered by a mock and not by {tool.name}, {because}"}
        case "code":
            said = f"{tool.name} failed: {verdict.reason}; its fallback ends the step with {declared.code}"
            return {"kind": "code", "refused": {"code": declared.code, "message": said}}
    name = declared.tool or ""
    body: dict[str, Any] = {"kind": "tool", "tool": name, "degraded": f"answered by {name}, {because}"}
    try:
        return {**body, "args": await _arguments(session, verdict.step_id, declared, name)}
    except Unmapped as error:
        said = f"{name} cannot stand in for {tool.name}: {error}"
        return {**body, "args": {}, "refused": {"code": "UNRESOLVED_REFERENCE", "message": said}}


async def _arguments(session: Session, unit: str, declared: Fallback, name: str) -> dict[str, JSON]:
    """The alternative's arguments: as declared, else those of the same name that it knows. Raises Unmapped."""
    step = session.step(base_id(unit))
    named, missing = await named_values(session, step, unit)
    try:
        original = resolve(without(step.args, missing), named.__getitem__)
    except UnresolvedReference as error:
        raise Unmapped(str(error)) from None
    if declared.args is not None:
        return {argument: _mapped(expression, original, argument) for argument, expression in declared.args.items()}
    known = session.engine.registry[name].arguments
    return {argument: value for argument, value in original.items() if known.open or argument in known.names}


def _mapped(expression: str, original: JSON, argument: str) -> JSON:
    """What one expression makes of the original arguments. One that finds nothing is no empty argument."""
    try:
        found = search(expression, original)
    except InvalidExpression as error:
        raise Unmapped(f"its argument {argument!r}: {error}") from None
    if found is None and not finds_null(expression, original):
        raise Unmapped(f"its argument {argument!r} is {expression!r}, which finds nothing in the arguments")
    return found
