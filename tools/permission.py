"""First layer: is the tool set up and switched on, and may this role use it."""

from __future__ import annotations

from tools.outcome import Call, Outcome, Proceed, refused
from tools.spec import ToolSpec


def permitted(spec: ToolSpec, role: str | None) -> bool:
    """Whether a role may use a tool; a tool that names no roles is everyone's."""
    return not spec.roles or role in spec.roles


async def check_permission(call: Call, proceed: Proceed) -> Outcome:
    """TOOL_DISABLED or NOT_PERMITTED instead of a call that may not be made."""
    if call.spec.to_configure is not None:
        return refused(call, "TOOL_DISABLED", f"{call.tool.name} cannot be called yet: {call.spec.to_configure}")
    if not call.tool.enabled:
        return refused(call, "TOOL_DISABLED", f"{call.tool.name} is switched off")
    if not permitted(call.spec, call.role):
        run_has = f"this run has the role {call.role!r}" if call.role else "this run has no role"
        roles = ", ".join(call.spec.roles)
        return refused(call, "NOT_PERMITTED", f"{call.tool.name} may be used by {roles}; {run_has}")
    return await proceed(call)
