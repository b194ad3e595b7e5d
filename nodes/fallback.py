"""fallback: a declared alternative takes the failed call's place, as an attempt that asks to start like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.attempt import named_values
from nodes.missing import without
from nodes.state import AgentState, Verdict
from nodes.step_run import base_id
from plans.expressions import InvalidExpression, search
from plans.references import UnresolvedReference, resolve
from plans.values import JSON

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.tool import Tool


async def fallback(state: AgentState, session: Session) -> dict[str, Any]:
    """Apply every fallback verdict that waits; the result will say which tool it came from."""
    waiting = [verdict for verdict in session.fold.queue if verdict.verdict == "fallback"]
    for verdict in waiting:
        await _apply(session, verdict)
    return {}


async def _apply(session: Session, verdict: Verdict) -> None:
    unit, name = verdict.step_id, verdict.alternative or ""
    step = session.step(base_id(unit))
    body = {
        "tool": name,
        "args": await _arguments(session, unit, session.engine.registry[step.tool or ""], name),
        "degraded": f"answered by {name}, because {step.tool} failed: {verdict.reason}",
    }
    await session.record("fallback", unit, verdict.attempt, body=body)
    session.scheduling().moved(unit)


async def _arguments(session: Session, unit: str, tool: Tool, name: str) -> dict[str, JSON]:
    """The alternative's arguments: as declared, else those of the same name that it knows."""
    step = session.step(base_id(unit))
    named, missing = await named_values(session, step, unit)
    try:
        original = resolve(without(step.args, missing), named.__getitem__)
        mapping = next(fallback.args for fallback in tool.spec.fallbacks if fallback.tool == name)
        if mapping is not None:
            return {argument: search(expression, original) for argument, expression in mapping.items()}
    except (UnresolvedReference, InvalidExpression):
        return {}
    known = session.engine.registry[name].arguments
    return {argument: value for argument, value in original.items() if known.open or argument in known.names}
