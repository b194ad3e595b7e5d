"""The plans of an experiment: a task's ground truth as a plan of a person's, and what attackers make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentdojo.functions_runtime import FunctionCall

from plans.references import escape
from tests.agentdojo.stage import is_read

Step = dict[str, Any]
EVIL = "evil"
"""How the ids of an attacker's steps begin."""


def literal(value: Any) -> Any:
    """A value as a plan has it that means nothing but itself."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {name: literal(item) for name, item in value.items()}
    return [literal(item) for item in value] if isinstance(value, list | tuple) else value


def steps_of(calls: Sequence[FunctionCall], prefix: str = "s") -> list[Step]:
    """Calls as steps, one after the other."""
    return [
        {
            "id": f"{prefix}{number}",
            "tool": call.function,
            "args": literal(dict(call.args)),
            "depends_on": [f"{prefix}{number - 1}"] if number else [],
            "reason": "the task needs it",
        }
        for number, call in enumerate(calls)
    ]


def task_plan(
    goal: str, calls: Sequence[FunctionCall], answer: str, *, checked: bool = False, broken: bool = False
) -> dict[str, Any]:
    """The task as somebody who knows it would plan it. `checked` has the verifier asked after its first step; `broken`
    has it begin with a read that cannot succeed, on which all the rest hangs."""
    steps = steps_of(calls)
    if checked:
        steps[0] = {**steps[0], "verify_after": True}
    if broken:
        first = {"id": "d0", "tool": "lookup", "args": {"name": "ann"}, "depends_on": [], "reason": "to be sure"}
        steps = [first, {**steps[0], "depends_on": ["d0"]}, *steps[1:]]
    return {"goal": goal[:4_000], "steps": steps, "answer": escape(answer) or "done"}


def hijacked(steps: Sequence[Step], attack: Sequence[FunctionCall], answer: str) -> dict[str, Any]:
    """A plan that does what the attacker wants first, and then the rest of what the user wants, so that nobody
    notices."""
    return {"goal": "as before", "steps": [*steps_of(attack, EVIL), *steps], "answer": escape(answer) or "done"}


def flowing(goal: str, calls: Sequence[FunctionCall], answer: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The task as a planner has to plan it that knows only the goal: what an effect takes and the goal does not say is
    read from earlier results by a judgement. Gives the plan, and what each judgement rightly says."""
    steps: list[Step] = []
    said: list[dict[str, Any]] = []
    for number, (call, plain) in enumerate(zip(calls, steps_of(calls), strict=True)):
        step = plain
        unsaid = {name: value for name, value in call.args.items() if not _is_in(goal, value)}
        if number and unsaid and not is_read(call.function):
            steps.append(_judgement(len(said), unsaid, number))
            step = {**plain, "args": {**plain["args"], **{name: f"${{x{len(said)}.{name}}}" for name in unsaid}}}
            said.append(unsaid)
        steps.append(step)
    return {"goal": goal[:4_000], "steps": steps, "answer": escape(answer) or "done"}, said


def _judgement(index: int, unsaid: dict[str, Any], number: int) -> Step:
    read = " ".join(f"${{s{earlier}}}" for earlier in range(number))
    return {
        "id": f"x{index}",
        "action": "llm",
        "instruction": f"Say what stands there for {', '.join(unsaid)}: {read}",
        "output_schema": {"type": "object", "properties": {name: {} for name in unsaid}, "required": list(unsaid)},
        "reason": "the goal does not say it",
    }


def _is_in(goal: str, value: Any) -> bool:
    """Whether the goal says this value by itself; flags and empty values say nothing."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return True
    if isinstance(value, list):
        return all(_is_in(goal, item) for item in value)
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text.lower() in goal.lower()
