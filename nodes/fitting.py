"""Whether resolved arguments fit their tool: where secrets may stand, its schema, its rules."""

from __future__ import annotations

from plans.placeholders import alone_in
from plans.values import JSON
from tools.tool import Tool
from tools.vault import hidden_in, misplaced


def unfit(tool: Tool, args: dict[str, JSON]) -> tuple[str, str] | None:
    """Code and sentence of what is wrong; None if nothing is. Secrets stand in arguments by placeholders: what they are
    is judged in the call, and where they may stand here."""
    if wrong := misplaced(args, tool.secret_args):
        kept = f"it keeps secret: {', '.join(sorted(tool.secret_args)) or 'none of its arguments'}"
        return "NOT_PERMITTED", f"{tool.name} is given a secret as {wrong[0]}, which it does not keep secret; {kept}"
    if problems := tool.check_args(args, list(alone_in(args))):
        said = "; ".join(f"{path}: {message}" if path else message for path, message in problems)
        return "INVALID_ARGS", f"{tool.name} does not take these arguments: {said}"
    if broken := tool.breaches(args, hidden_in(tool, args)):
        return "RULE_VIOLATED", broken[0].sentence
    return None
