"""The toolkit `python`: small data steps in a sandbox without files, network, clock or chance.

    python(code, inputs={})        {"result": JSON, "printed": text}        read, cached

Each of `inputs` is a variable of the code, and the value of its last expression is the result:

    {"code": "sum(line['price'] * line['count'] for line in lines)", "inputs": {"lines": "${s1.lines}"}}

The interpreter is pydantic-monty: a Python written anew in which there is nothing to reach for (no open, no
__import__, no classes behind an object), run in a process of its own for each call, with limits on time, memory, depth
of calls and size of the result. It knows most of the language and of math, re, json, datetime, collections, itertools,
functools, decimal, random (always from the same seed) and base64; neither class inheritance nor `del`.

Failures: INVALID_ARGS (the code is no Python, found when the plan is checked), TOOL_ERROR (it raises, with the line),
RESOURCE_LIMIT (time, memory, depth or size), OUTPUT_INVALID (a result that is no JSON). None of them is tried again:
the same code would do the same.

`python_toolkit(functions={"rate": rate})` is the same tool with functions of yours that the code may call.
"""

from __future__ import annotations

from tools.python.sandbox import SandboxLimits
from tools.python.toolkit import python, python_toolkit

__all__ = ["SandboxLimits", "python", "python_toolkit"]
