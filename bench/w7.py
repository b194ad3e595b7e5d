"""W7: what does it cost, in tokens of the prompt, to mend one step instead of planning the rest anew?"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.crew import ROOT
from bench.figures import Line, Series
from bench.server import Server
from nodes.budget import fitted, tokens_of
from nodes.catalog import summary
from nodes.model_settings import PROMPT_TOKENS, estimated
from nodes.offered import examples
from nodes.plan_form import PlanForm, RepairForm
from nodes.planner import FinishedStep, planning_prompt
from nodes.reach import needed_fields
from nodes.replanner import Broken, repair_prompt
from nodes.shortlist import shortlist
from plans.failure import Failure
from plans.plan import Plan, Step
from plans.values import JSON
from tools.fallbacks import Fallback
from tools.mocks import mock_value
from tools.orders.toolkit import orders
from tools.registry import Registry, Toolkit
from tools.tabular.toolkit import tabular

STEPS = (10, 50, 200)
BOUND = 0.15
RECORDED = ROOT.parent / "shared" / "cases" / "complexfuncbench"
"""Real plans beside the checkout, where they are there."""

Lookup = tuple[str, dict[str, JSON], str]
_AFTER_FINDING: Sequence[Lookup] = (
    ("get_order", {"order_id": "${before.order_id}"}, "Look the order up"),
    ("get_shipment", {"order_id": "${before.order_id}"}, "Find its parcel"),
    ("get_refund_status_gateway", {"order_id": "${before.order_id}"}, "See what was refunded"),
    ("explain_delay", {"order_id": "${before.order_id}"}, "Find the cause of the delay"),
)


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of the two prompts after one failure, and the same with the schema that the answer is held to."""

    local: int
    whole: int
    local_held: int
    whole_held: int

    @property
    def ratio(self) -> float:
        """Local to whole."""
        return self.local / self.whole


def measure(_: Server, rounds: int, sizes: Sequence[int] = STEPS, others: Sequence[str] = ()) -> list[Line]:
    """Each step of each plan fails once, all before it finished. Tokens are estimated as everywhere; the same prompts
    have the same number of them, so that one round says all."""
    del rounds, others
    both = Registry.of(orders, tabular)
    lines = []
    for name, make in (("chain", chain), ("fan", fan)):
        for size in sizes:
            costs = list(each_failing(make(size), both))
            lines.append(_line(f"{name} of {size} steps, {len(both)} tools", costs, BOUND))
    if RECORDED.is_dir():
        lines.append(_line("279 recorded travel plans, 38 tools without a declared result", list(recorded()), None))
    for what, registry in (
        ("the orders' tools alone", Registry.of(orders)),
        ("three small tools", Registry.of(_tiny())),
    ):
        costs = list(each_failing(pair(registry), registry))
        lines.append(_line(f"2 steps, {what} ({len(registry)})", costs))
    return lines


def _line(what: str, costs: Sequence[Costs], bound: float | None = None) -> Line:
    """The worst failure counts."""
    ratios = Series.of(cost.ratio for cost in costs)
    held = max(cost.local_held / cost.whole_held for cost in costs)
    local, whole = (Series.of(getattr(cost, name) for cost in costs).median for name in ("local", "whole"))
    beside = f"{local:,.0f} of {whole:,.0f} tokens; with the answer's schema at most {held:.2f}"
    worst = max(ratios.values)
    return Line("W7", f"local against full replan: {what}", ratios.told("", 3), worst, bound, beside=beside)


def each_failing(plan: Plan, registry: Registry, results: Mapping[str, JSON] | None = None) -> Iterator[Costs]:
    """What the two prompts cost after each step's failure."""
    finished: list[FinishedStep] = []
    schema_tokens = _schema_tokens(PlanForm(registry.values()))
    for step in plan.steps:
        yield costs_of(plan, step, registry, finished, schema_tokens)
        finished.append(FinishedStep(step, summary(results[step.id] if results else _mock(step, registry))))


def costs_of(
    plan: Plan, step: Step, registry: Registry, finished: Sequence[FinishedStep], schema_tokens: int = 0
) -> Costs:
    """What the two prompts cost after this step has failed, with those before it finished."""
    failure = Failure(
        code="NOT_FOUND", message=f"{step.tool} found nothing of that name", step_id=step.id, tool=step.tool
    )
    tools, own = list(registry.values()), registry[step.tool or ""]
    short = shortlist(step, own, needed_fields(plan, step.id), tools)
    local = tokens_of(repair_prompt(Broken(plan, failure, {}, own=own, finished=finished), short))
    write = partial(planning_prompt, plan.goal, {}, tools, finished=finished, failure=failure)
    shots = examples(registry, tools)
    whole = tokens_of(next(fitted(lambda cut: write(cut=cut, few_shots=shots), PROMPT_TOKENS)))
    form = RepairForm(step.id, short.shown, (tool.name for tool in short.named))
    return Costs(local, whole, local + _schema_tokens(form), whole + schema_tokens)


def _schema_tokens(form: PlanForm) -> int:
    return estimated(json.dumps(form.schema))


def _mock(step: Step, registry: Registry) -> JSON:
    return mock_value(registry[step.tool or ""], Fallback(mock=True))


def chain(size: int) -> Plan:
    """Find an order, and look at it in turn from each side; each step reads the one before. The last is a report."""
    steps = [_step(1, "find_orders", {"late": True, "limit": 50}, "Find late orders")]
    for number in range(2, size):
        tool, _, title = _AFTER_FINDING[number % len(_AFTER_FINDING)]
        before = "${s1.orders[0].order_id}" if number == 2 else f"${{s{number - 1}.order_id}}"
        steps.append(_step(number, tool, {"order_id": before}, title, f"s{number - 1}"))
    before = f"s{size - 1}"
    sections: JSON = [{"heading": "Findings", "text": f"${{{before}}}"}]
    steps.append(_step(size, "render_report", {"title": "Late orders", "sections": sections}, "Write it up", before))
    return _plan(steps, size)


def fan(size: int) -> Plan:
    """Find orders, look each of them up beside the others, and write one report of all."""
    steps = [_step(1, "find_orders", {"late": True, "limit": size}, "Find late orders")]
    for number in range(2, size):
        tool, _, title = _AFTER_FINDING[number % len(_AFTER_FINDING)]
        steps.append(_step(number, tool, {"order_id": f"${{s1.orders[{number - 2}].order_id}}"}, title, "s1"))
    read = [f"s{number}" for number in range(2, size)] or ["s1"]
    sections: JSON = [{"heading": f"Order {name}", "text": f"${{{name}}}"} for name in read]
    steps.append(_step(size, "render_report", {"title": "Late orders", "sections": sections}, "Write it up", *read))
    return _plan(steps, size)


def pair(registry: Registry) -> Plan:
    """Two lookups of one order; the least that there is to mend."""
    names = [name for name, tool in registry.items() if tool.input_schema.get("required") == ["order_id"]][:2]
    steps = [
        _step(number, name, {"order_id": "A1" if number == 1 else "${s1.order_id}"}, "Look it up")
        for number, name in enumerate(names, 1)
    ]
    return Plan.model_validate({"goal": "What became of order A1?", "steps": steps, "answer": "${s2.order_id}"})


def _tiny() -> Toolkit:
    kit = Toolkit("tiny")
    for name in ("find_order", "find_parcel", "find_invoice"):
        kit.add(_found, name=name, description=f"{name.replace('_', ' ').capitalize()}.", effect="read")
    return kit


def _found(order_id: str) -> dict[str, str]:
    return {"order_id": order_id}


def _step(number: int, tool: str, args: dict[str, JSON], title: str, *after: str) -> dict[str, Any]:
    reason = "The report says so."
    return {"id": f"s{number}", "title": title, "tool": tool, "args": args, "depends_on": list(after), "reason": reason}


def _plan(steps: list[dict[str, Any]], size: int) -> Plan:
    answer = f"The report is at ${{s{size}.report_html}}."
    goal = "Find the late orders, what became of each of them, and write a report about it."
    return Plan.model_validate({"goal": goal, "steps": steps, "answer": answer})


def recorded(folder: Path = RECORDED) -> Iterator[Costs]:
    """Real plans, each step failing, with what the steps before it really gave; their tools declare no results."""
    plans = [json.loads(line) for line in (folder / "plans.jsonl").read_text("utf-8").splitlines()]
    with gzip.open(folder / "responses.jsonl.gz", "rt", encoding="utf-8") as lines:
        answers = {case["id"]: case["responses"] for case in map(json.loads, lines)}
    registry = Registry.of(_travel([step for case in plans for step in case["plan"]["steps"]]))
    for case in plans:
        yield from each_failing(Plan.model_validate(case["plan"]), registry, answers[case["id"]])


def _travel(steps: Sequence[Mapping[str, Any]]) -> Toolkit:
    """The tools that these steps call, with the arguments that they give."""
    kit, known = Toolkit("travel"), dict[str, dict[str, Any]]()
    for step in steps:
        known.setdefault(step["tool"], {}).update(step["args"])
    for name, args in known.items():
        schema = {"type": "object", "properties": {each: {"type": "string"} for each in args}}
        kit.add(lambda **given: given, name=name, description=name.replace("_", " "), effect="read", args_schema=schema)
    return kit
