"""Second layer: the conditions over its arguments that a tool declares as data."""

from __future__ import annotations

from collections.abc import Mapping

from plans.expressions import InvalidExpression, holds
from plans.values import JSON
from tools.outcome import Call, Outcome, Proceed, refused
from tools.spec import Rule
from tools.tool import Tool


def broken_rule(tool: Tool, args: Mapping[str, JSON]) -> Rule | None:
    """The first rule that these resolved arguments break. Decimals count as numbers, however they are written. What
    cannot be evaluated does not hold: a rule is a guard, and a guard that stumbles does not let pass."""
    if not tool.spec.rules:
        return None
    seen = tool.arguments.comparable(args)
    return next((rule for rule in tool.spec.rules if not _holds(rule, seen)), None)


async def check_rules(call: Call, proceed: Proceed) -> Outcome:
    """RULE_VIOLATED instead of a call that breaks a rule, in the words of the rule."""
    rule = broken_rule(call.tool, call.args)
    if rule is not None:
        return refused(call, "RULE_VIOLATED", f"{call.tool.name}: {rule.message}")
    return await proceed(call)


def _holds(rule: Rule, args: dict[str, JSON]) -> bool:
    try:
        return holds(rule.condition, args)
    except InvalidExpression:
        return False
