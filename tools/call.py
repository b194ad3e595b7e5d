"""A safeguarded call: the layers, in the order in which a call passes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from plans.values import JSON
from tools.breaker import break_circuit
from tools.cache import use_cache
from tools.context import ToolContext
from tools.deadline import hold_deadline
from tools.fingerprints import refuse_repetition
from tools.limiter import limit
from tools.normalise import call_tool
from tools.outcome import Call, CallFailure, Late, Layer, Outcome, Proceed, Success, nobody
from tools.permission import check_permission
from tools.ports import Ports
from tools.retry import retry_transport
from tools.rules import check_rules
from tools.settings import tool_now
from tools.shadows import answer_beside, count_work
from tools.tool import Tool

__all__ = ["CallFailure", "Outcome", "Success", "call"]


def chain(*layers: Layer) -> Proceed:
    """The first layer around the second, and so on, around the call of the tool itself."""
    proceed: Proceed = call_tool
    for layer in reversed(layers):
        proceed = _around(layer, proceed)
    return proceed


def _around(layer: Layer, proceed: Proceed) -> Proceed:
    return lambda call: layer(call, proceed)


# Retries stand outside of breaker and limiter: the breaker counts calls, and nothing is held while waiting.
_guards: tuple[Layer, ...] = (refuse_repetition, retry_transport, break_circuit, limit, hold_deadline)
_candidate = chain(check_permission, check_rules, *_guards)
_shadow = chain(check_permission, check_rules, retry_transport, break_circuit, limit, count_work, hold_deadline)
_safeguarded = chain(check_permission, check_rules, use_cache, answer_beside(_candidate, _shadow), *_guards)


async def call(
    tool: Tool,
    args: Mapping[str, JSON],
    ctx: ToolContext,
    ports: Ports,
    *,
    role: str | None = None,
    tries: int = 0,
    late: Callable[[Late], None] | None = None,
) -> Outcome:
    """Call a tool with resolved arguments; `tries` is how many attempts the run grants a step, `late` is told of what
    comes back after it was given up. Whatever the tool does, this ends at `ctx.deadline`, give or take 50 ms, with a
    Success or a CallFailure. As exceptions come out cancellation, LangGraph's control flow, and what the ports raise
    when their store is gone."""
    began = ports.clock.monotonic()
    now = await tool_now(tool, ports.settings)
    asked = Call(now.tool, now.tool.spec, args, ctx, ports, role, tries=tries, asked_at=began, late=late or nobody)
    outcome = await _safeguarded(replace(asked, answered_by=now.answered_by) if now.answered_by else asked)
    if isinstance(outcome, Success):
        return replace(outcome, elapsed_s=ports.clock.monotonic() - began)
    return outcome
