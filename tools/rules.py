"""Second layer: the rules over its arguments that a tool declares as data."""

from __future__ import annotations

from tools.outcome import Call, Outcome, Proceed, refused
from tools.vault import hidden_in


async def check_rules(call: Call, proceed: Proceed) -> Outcome:
    """RULE_VIOLATED instead of a call that breaks a rule, in the words of the first one. The same rules were asked when
    the plan was checked, as far as its arguments were known then, and when the step was admitted. Those
    over secret arguments are judged where the secrets are put in (`tools/normalise.py`)."""
    if broken := call.tool.breaches(call.args, hidden_in(call.tool, call.args)):
        return refused(call, "RULE_VIOLATED", broken[0].sentence)
    return await proceed(call)
