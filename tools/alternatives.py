"""The arguments of an alternative tool, made from those of the call that failed."""

from __future__ import annotations

from collections.abc import Mapping

from plans.expressions import InvalidExpression, search
from plans.failure import ToolFailure
from plans.values import JSON
from tools.spec import Fallback
from tools.tool import Tool


def arguments_for(fallback: Fallback, args: Mapping[str, JSON], alternative: Tool) -> dict[str, JSON]:
    """What to call the alternative with. Without a mapping it gets those arguments that it knows by the same name; an
    expression that finds nothing leaves its argument out. ToolFailure INVALID_ARGS where one cannot be evaluated."""
    if fallback.args is None:
        known = alternative.arguments.names
        return {name: value for name, value in args.items() if name in known or alternative.arguments.open}
    try:
        found = {name: search(expression, dict(args)) for name, expression in fallback.args.items()}
    except InvalidExpression as error:
        raise ToolFailure("INVALID_ARGS", f"the arguments of {alternative.name} cannot be made: {error}") from None
    return {name: value for name, value in found.items() if value is not None}
