"""Every code of the linter: a plan that has exactly this fault, and its nearest neighbour that is clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from plans.faults import Fault, FaultCode
from plans.limits import Limits
from plans.lint import lint_reading
from plans.plan import SCHEMA_VERSION
from plans.reader import read_plan
from plans.values import JSON
from tests.plans.sample import ORDER, TOOLS, Tool

OF_THE_RUN = {
    "REPEATED_EFFECT", "NO_PROGRESS", "MODEL_NOT_CONFIGURED", "MODEL_FAILED", "INVALID_INPUT", "CHANGED_FINISHED_STEP",
}  # fmt: skip
"""Codes that nobody can give who sees a plan and not its run."""


class Ruled(Tool):
    """A tool with one rule."""

    def breaches(self, args: Any, references: Any = ()) -> list[tuple[str, str]]:
        return [("order_id", "ruled: not this one")] if args.get("order_id") == "A13" else []


LISTED: dict[str, JSON] = {"type": "array", "items": ORDER}
KIT: dict[str, Tool] = {
    **TOOLS,
    "ruled": Ruled("ruled", {"order_id": str}, output_schema={"type": "string"}),
    "unset": Tool("unset", to_configure="set X", output_schema={"type": "string"}),
    "everything": Tool("everything", {}, output_schema=LISTED),
    "top_ten": Tool("top_ten", {}, output_schema={**LISTED, "maxItems": 10}),
    "thousands": Tool("thousands", {}, output_schema={**LISTED, "minItems": 1_000, "maxItems": 5_000}),
    "slow": Tool("slow", {"n": int}, output_schema={"type": "string"}, timeout_s=40),
    "rare": Tool("rare", {"n": int}, output_schema={"type": "string"}, a_second=1),
    "set_flag": Tool("set_flag", {"order_id": str}, effect="transactional", output_schema={"type": "string"}),
    "pay": Tool("pay", {"order_id": str}, effect="irreversible", can_undo=True, output_schema={"type": "string"}),
}
GET = {"id": "s1", "tool": "get_order", "args": {"order_id": "A1"}}
SECOND = {"id": "s2", "tool": "get_order", "args": {"order_id": "${s1.id}"}}
SEND = {"id": "s2", "tool": "send_reply", "args": {"order_id": "A1", "body": "b"}, "success_when": "@ == `null`"}
EACH = {"id": "s2", "tool": "get_order", "args": {"order_id": "${item.id}"}}
WRITE = {"id": "s2", "action": "llm", "output_schema": {"type": "string"}, "depends_on": ["s1"]}
WAIT = Limits(max_wall_s=60)


class Pair(NamedTuple):
    """Two texts, the first with exactly the code; `limits` and the reason why a model stopped count for both."""

    code: FaultCode
    wrong: str
    right: str
    limits: Limits = Limits()
    finish: str | None = None


def text(*steps: dict[str, Any], **fields: Any) -> str:
    """A plan of these steps."""
    return json.dumps({"goal": "g", "steps": list(steps), **fields})


GOOD = text(GET)
TWICE = GOOD.replace('"order_id": "A1"', '"order_id": "A1", "order_id": "A2"')
PAIRS = [
    Pair("PLAN_SYNTAX", GOOD.replace('"goal": ', '"goal" '), GOOD),
    Pair("PLAN_TRUNCATED", GOOD[:-1], GOOD),
    Pair("PLAN_AMBIGUOUS", f"{GOOD} {GOOD}", f"{GOOD} {{ok}}"),
    Pair("PLAN_EMPTY", text(), GOOD),
    Pair("SCHEMA_INVALID", text({**GET, "source": "x"}), text({**GET, "reason": "x"})),
    Pair(
        "SCHEMA_INVALID",
        text(GET, {**SECOND, "when": "s1.labels.a == true"}),
        text(GET, {**SECOND, "when": "s1.labels.a == `true`"}),
    ),
    Pair("DUPLICATE_KEY", TWICE, GOOD),
    Pair("VERSION_TOO_NEW", text(GET, schema_version=SCHEMA_VERSION + 1), text(GET, schema_version=SCHEMA_VERSION)),
    Pair("DUPLICATE_STEP_ID", text(GET, {**SECOND, "id": "s1", "args": {"order_id": "B"}}), text(GET, SECOND)),
    Pair("UNKNOWN_TOOL", text({**GET, "tool": "get_ordr"}), GOOD),
    Pair("TOOL_UNAVAILABLE", text({"id": "s1", "tool": "unset"}), text({"id": "s1", "tool": "everything"})),
    Pair("INVALID_ARGS", text({**GET, "args": {"order_id": 3}}), GOOD),
    Pair("INVALID_ARGS", text({**GET, "args": {"order_id": "a\x00"}}), GOOD),
    Pair("RULE_VIOLATED", text({**GET, "tool": "ruled", "args": {"order_id": "A13"}}), text({**GET, "tool": "ruled"})),
    Pair("CYCLE", text({**GET, "depends_on": ["s2"]}, SECOND), text(GET, {**SECOND, "depends_on": ["s1"]})),
    Pair(
        "UNKNOWN_DEPENDENCY", text(GET, {**SECOND, "depends_on": ["s0"]}), text(GET, {**SECOND, "depends_on": ["s1"]})
    ),
    Pair("UNKNOWN_REFERENCE", text(GET, {**SECOND, "args": {"order_id": "${s1.idd}"}}), text(GET, SECOND)),
    Pair(
        "UNKNOWN_REFERENCE",
        text({"id": "s1", "tool": "top_ten"}, {**EACH, "for_each": "${s1}", "args": {"order_id": "${item.idd}"}}),
        text({"id": "s1", "tool": "top_ten"}, {**EACH, "for_each": "${s1}"}),
    ),
    Pair(
        "MISSING_DEPENDENCY",
        text(GET, {**WRITE, "depends_on": [], "instruction": "Judge what s1 found."}),
        text(GET, {**WRITE, "instruction": "Judge what s1 found."}),
    ),
    Pair("TOO_MANY_STEPS", text(GET, SECOND), GOOD, Limits(max_steps=1)),
    Pair(
        "LIMIT_INFEASIBLE",
        text(*({"id": f"s{n}", "tool": "rare", "args": {"n": n}} for n in range(12))),
        text(*({"id": f"s{n}", "tool": "rare", "args": {"n": n}} for n in range(9))),
        Limits(max_wall_s=10),
    ),
    Pair(
        "LIMIT_INFEASIBLE",
        text(GET, {**WRITE, "instruction": "x" * 900}),
        text(GET, {**WRITE, "instruction": "x" * 800}),
        Limits(max_tokens=100),
    ),
    Pair(
        "LIMIT_INFEASIBLE",
        text({"id": "s1", "tool": "thousands"}, {**EACH, "for_each": "${s1}"}),
        text({"id": "s1", "tool": "top_ten"}, {**EACH, "for_each": "${s1}"}),
    ),
    Pair("NO_CRITERION", text(GET, {**SEND, "success_when": None}), text(GET, SEND)),
    Pair("UNREAD_OUTPUT", text(GET, answer="done"), text(GET, answer="${s1.id}")),
    Pair("REDUNDANT_STEP", text(GET, {**GET, "id": "s2"}), text(GET, {**GET, "id": "s2", "args": {"order_id": "A2"}})),
    Pair(
        "NO_UNDO",
        text({**GET, "tool": "set_flag"}, {**SEND, "depends_on": ["s1"]}),
        text({**GET, "tool": "pay"}, {**SEND, "depends_on": ["s1"]}),
    ),
    Pair(
        "UNBOUNDED_FOR_EACH",
        text({"id": "s1", "tool": "everything"}, {**EACH, "for_each": "${s1}"}),
        text({"id": "s1", "tool": "everything"}, {**EACH, "for_each": "${s1[:20]}"}),
    ),
    Pair(
        "OVER_DEADLINE",
        text(
            {"id": "s1", "tool": "slow", "args": {"n": 1}},
            {"id": "s2", "tool": "slow", "args": {"n": 2}, "depends_on": ["s1"]},
        ),
        text({"id": "s1", "tool": "slow", "args": {"n": 1}}, {"id": "s2", "tool": "slow", "args": {"n": 2}}),
        WAIT,
    ),
]


def judged(pair: Pair, written: str) -> list[Fault]:
    """Everything that is said of a text."""
    return lint_reading(read_plan(written, pair.finish), KIT, limits=pair.limits)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.code)
def test_each_code_stands_for_exactly_one_thing(pair: Pair) -> None:
    """The plan has this fault and no other, with its place; the neighbour is clean, without even a warning."""
    (fault,) = judged(pair, pair.wrong)
    assert fault.code == pair.code
    assert fault.path or fault.code.startswith("PLAN_")
    assert judged(pair, pair.right) == []


def test_every_code_of_a_plan_is_shown() -> None:
    """No code without its pair: those of a run are given, and tested, where the run is known."""
    refused = read_plan(GOOD, "content_filter").faults
    forbidden = lint_reading(read_plan(GOOD), KIT, role_permits=lambda tool: tool.name != "get_order")
    assert [fault.code for fault in (*refused, *forbidden)] == ["PLAN_REFUSED", "NOT_PERMITTED"]
    assert {pair.code for pair in PAIRS} | {"PLAN_REFUSED", "NOT_PERMITTED"} == set(get_args(FaultCode)) - OF_THE_RUN


def test_every_code_is_explained() -> None:
    """`docs/faults.md` says what each code means, and knows no other."""
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    explained = {code.strip() for row in rows for code in row.split(",")} - {"code"}
    assert explained == set(get_args(FaultCode))


@pytest.mark.parametrize(
    "steps",
    [
        [
            GET,
            {"id": "w", "tool": "set_flag", "args": {"order_id": "A1"}, "depends_on": ["s1"]},
            {**GET, "id": "s2", "depends_on": ["w"]},
        ],
        [
            {"id": "a", "tool": "send_reply", "args": SEND["args"], "success_when": "@"},
            {"id": "b", "tool": "send_reply", "args": SEND["args"], "success_when": "@"},
        ],
        [GET, {**GET, "id": "s2", "when": "s1.status == 'late'"}],
        [{**GET, "for_each": "${inputs.ids}", "args": {"order_id": "${item}"}}],
        [GET, {**EACH, "for_each": "${s1.lines[*].sku | [:3]}", "args": {"order_id": "${item}"}}],
        [GET, {**WRITE, "instruction": "Write a report, then judge it."}],
        [{**GET, "tool": "set_flag"}, {**SECOND, "args": {"order_id": "A"}, "depends_on": ["s1"]}],
        [SEND, {**GET, "id": "s3"}],
    ],
    ids=["read after a change", "effects", "another condition", "an input", "a slice", "words", "a look", "beside"],
)
def test_a_warning_is_not_given_where_the_plan_may_well_be_meant(steps: list[dict[str, Any]]) -> None:
    """Warnings stay few: what a careful author would write gets none."""
    assert lint_reading(read_plan(text(*steps)), KIT, inputs=("ids",)) == []
