"""The tool `python` as it is declared; the interpreter is loaded with the first code."""

from __future__ import annotations

import keyword
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from tools.context import ToolContext
from tools.python.sandbox import SandboxLimits
from tools.registry import Toolkit
from tools.spec import BreakerPolicy

MAX_CODE = 20_000
TIMEOUT_S = 8.0
CACHED_S = 300.0

INTERPRETER = shutil.which("monty", path=sysconfig.get_path("scripts"))
"""Where the interpreter is; None: let the library look. Found while loading, since code is also read on the event loop,
where nothing may touch the disk."""

# Failures of this tool are almost always the code's own: they must not take it away from everybody else.
_NEVER = BreakerPolicy(window=1_000, min_calls=1_000, in_a_row=1_000, failure_rate=0.99)


def _readable(code: str) -> str:
    from tools.python.sandbox import syntax_problem

    if problem := syntax_problem(code, INTERPRETER):
        raise ValueError(problem)
    return code


def _names(inputs: dict[str, Any]) -> dict[str, Any]:
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"{name!r} cannot be the name of a variable")
    return inputs


_DESCRIPTION = (
    "Compute something from earlier results: filter, sort, count, join, convert. `code` is Python in a sandbox without "
    "files, network, clock or installed packages; each of `inputs` is a variable in it. `result` is the value of its "
    "last expression, as JSON."
)
Code = Annotated[str, Field(min_length=1, max_length=MAX_CODE), AfterValidator(_readable)]
Inputs = Annotated[dict[str, Any], AfterValidator(_names)]


class Computed(BaseModel):
    """What the code gave: the value of its last expression, and the beginning of what it printed."""

    result: Any
    printed: str = ""


def python_toolkit(
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    limits: SandboxLimits | None = None,
    name: str = "python",
) -> Toolkit:
    """A toolkit with the one tool `name`. `functions` are called in this process, with values of the code's making, and
    results are then not cached: only their author knows whether they give the same again."""
    toolkit = Toolkit(name, description="Small data steps in a sandbox: no files, no network, no clock.")
    handed, within = dict(functions or {}), limits or SandboxLimits()
    called = f" It may call {', '.join(sorted(handed))}." if handed else ""

    @toolkit.tool(
        name=name,
        effect="read",
        timeout_s=TIMEOUT_S,
        cache_ttl_s=None if handed else CACHED_S,
        output_trust="untrusted" if handed else "trusted",  # without functions it says nothing but what it was given
        breaker=_NEVER,
        description=f"{_DESCRIPTION}{called}",
    )
    def run_code(ctx: ToolContext, code: Code, inputs: Inputs | None = None) -> Computed:
        from tools.python.results import as_json
        from tools.python.sandbox import run

        ran = run(code, inputs or {}, within, seconds_left=ctx.seconds_left, functions=handed, interpreter=INTERPRETER)
        return Computed(result=as_json(ran.value, within.result), printed=ran.printed)

    return toolkit


python = python_toolkit()
