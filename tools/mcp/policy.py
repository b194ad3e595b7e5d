"""Effect and risk of a foreign tool: our configuration says them, and the server's own claims can make them stricter.

A server that says that its tool only reads may be wrong, or lie: that claim is believed where we say so, and nowhere
else. One that says that its tool writes, or destroys, speaks against itself and is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.mcp.config import CALL_S, MCP_ONLY, Server
from tools.mcp.definition import Definition
from tools.spec import RISKS, Effect, Risk, at_least


def declared(server: Server, definition: Definition) -> tuple[dict[str, Any], list[str]]:
    """What of a ToolSpec is declared for a tool, and where the server's claim has overruled our configuration. Without
    a word of ours it is irreversible and of high risk."""
    said = {"timeout_s": CALL_S, **server.every, **server.tools.get(definition.name, {})}
    hints = {} if server.ignore_annotations else definition.hints
    default_effect, default_risk = _claimed(hints) if server.trust_annotations else ("irreversible", "high")
    effect = said.get("effect", default_effect)
    if "risk" not in said:
        said["risk"] = "low" if effect == "read" else default_risk
    remarks = []
    if hints.get("readOnlyHint") is False and effect == "read":
        effect = "irreversible"
        said["risk"] = "high"
        said.pop("retry", None)
        said.pop("cache_ttl_s", None)
        remarks.append("is said to write by its server, and counts as irreversible whatever is configured")
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        stricter = at_least(said["risk"], "high")
        if said["risk"] in RISKS and stricter != said["risk"]:
            remarks.append("is said to destroy by its server, and counts as of high risk whatever is configured")
        said["risk"] = stricter
    return {key: value for key, value in {**said, "effect": effect}.items() if key not in MCP_ONLY}, remarks


def errors_are_certain(server: Server, name: str) -> bool:
    """Whether an error that the tool reports means that it has not acted."""
    return bool({**server.every, **server.tools.get(name, {})}.get("errors_are_certain", False))


def _claimed(hints: Mapping[str, bool]) -> tuple[Effect, Risk]:
    """What trusted annotations say. Theirs of being idempotent (the same arguments again do nothing more) is more than
    ours asks for (the same key again)."""
    if hints.get("readOnlyHint"):
        return "read", "low"
    risk: Risk = "medium" if hints.get("destructiveHint") is False else "high"
    return ("idempotent" if hints.get("idempotentHint") else "irreversible"), risk
