"""Asking a tool's probe what became of an effect whose result nobody saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plans.failure import Failure
from plans.values import JSON
from tools.callee import NOTHING, Unusable, read
from tools.context import ToolContext
from tools.deadline import hold_deadline
from tools.local import local_ports
from tools.normalise import call_tool
from tools.outcome import Call, CallFailure
from tools.output import Result
from tools.ports import Ports
from tools.schema import of_signature
from tools.spec import Isolation, ToolSpec
from tools.tool import Tool

if TYPE_CHECKING:
    from tools.tool import Probe


def probing_tool(name: str, probe: Probe, timeout_s: float) -> Tool:
    """A probe as the read that it is. Raises Unusable for one that does not take the key alone."""
    callee, signature = read(probe, {})
    needed = [parameter.name for parameter in signature.parameters if parameter.default is NOTHING]
    if len(needed) != 1:
        raise Unusable("has a probe that takes something else than the idempotency key (and a ToolContext if it likes)")
    isolation: Isolation = "async" if callee.is_async else "thread"
    spec = ToolSpec(name=name, effect="read", timeout_s=timeout_s, isolation=isolation)
    return Tool(spec, of_signature(signature), Result(), callee)


async def ask(
    name: str, probe: Probe, key: str, ctx: ToolContext, timeout_s: float, ports: Ports | None = None
) -> JSON | Failure:
    """What the probe answers within the time, or the failure to find out."""
    tool = probing_tool(name, probe, timeout_s)
    args = dict.fromkeys(tool.input_schema["required"], key)
    outcome = await hold_deadline(Call(tool, tool.spec, args, ctx, ports or local_ports()), call_tool)
    return outcome.failure if isinstance(outcome, CallFailure) else outcome.value
