"""W6: a plan of a thousand steps as text, to every fault of it. How much of the processor's time does that take?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.figures import Line, Series, ratios
from bench.server import Server
from plans.faults import errors_among
from plans.limits import Limits
from plans.lint import lint_reading
from plans.plan import PlanDraft
from plans.reader import read_plan
from tools.registry import Toolkit

STEPS = (1_000,)
BOUND_MS = 50.0
TIMES = 10
"""How often the text is judged in each round; all count."""

shop = Toolkit("shop")


@shop.tool(effect="read")
def get_order(order_id: str, lines: list[str] | None = None) -> dict[str, Any]:
    """Look one order up."""
    return {"id": order_id, "lines": lines}


def measure(_: Server, rounds: int, sizes: Sequence[int] = STEPS, others: Sequence[str] = ()) -> list[Line]:
    """A right plan, and one in which every step is wrong; `sizes` are numbers of steps, the largest counts. Beside them
    the least that could be done with the text, at the same moments: its JSON read and given to pydantic. Nothing is
    waited for in it, so that the processor's own time is what its author waits."""
    del others
    size = max(sizes)
    right, least = _judged(_plan(size, "get_order", "order_id"), lambda found: not found, rounds)
    wrong = _judged(_plan(size, "get_ordr", "order"), lambda found: len(found) >= min(size, 200), rounds)[0]
    beside = (
        f"JSON and pydantic alone {least.told(' ms', 1)}, {ratios(right.values, least.values).median:.1f} times faster"
    )
    what = f"validate: {size:,} steps"
    return [
        Line("W6", f"{what} without a fault", right.told(" ms", 1), right.median, BOUND_MS, unit=" ms", beside=beside),
        Line("W6", f"{what}, all wrong", wrong.told(" ms", 1), wrong.median, BOUND_MS, unit=" ms"),
    ]


def _plan(size: int, tool: str, argument: str) -> str:
    """Every step reads the one before it and one long before, and judges its own result."""
    steps = [
        {
            "id": f"s{number}",
            "title": f"Step {number}",
            "action": "tool",
            "tool": tool,
            "args": {argument: f"${{s{number - 1}.id}}" if number else "A1", "lines": [f"${{s{number // 2}.id}}", "x"]}
            if number
            else {argument: "A1"},
            "depends_on": [f"s{number // 3}"] if number else [],
            "success_when": "id != `null`",
            "reason": "the next one reads it",
        }
        for number in range(size)
    ]
    return json.dumps({"goal": "judge this", "steps": steps, "answer": f"${{s{size - 1}.id}}"})


def _judged(text: str, as_expected: Callable[[Sequence[object]], bool], rounds: int) -> tuple[Series, Series]:
    """How long the text is judged, and how long it is only read, turn by turn, in milliseconds."""
    judged, read = [], []
    for _ in range(rounds * TIMES):
        began = time.process_time()
        faults = errors_among(lint_reading(read_plan(text), shop.tools, limits=Limits(max_steps=100_000)))
        between = time.process_time()
        PlanDraft.model_validate(json.loads(text))
        judged.append((between - began) * 1_000)
        read.append((time.process_time() - between) * 1_000)
        if not as_expected(faults):
            raise RuntimeError(f"the plan was judged otherwise than it should be: {faults[:3]}")
    return Series.of(judged), Series.of(read)
