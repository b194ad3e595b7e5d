"""The shipped templates: what they match, what they leave alone, and the plans they give."""

from __future__ import annotations

import time
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

import pytest

from nodes.template_files import Example
from nodes.templates import Template, choose, fill, load_templates, match, named, overview, read_folder
from plans.errors import InvalidInput
from plans.lint import lint
from plans.plan import PlanDraft
from plans.references import references_in
from tools.orders import orders
from tools.registry import Registry
from tools.tabular import tabular

TEMPLATES = load_templates()
REGISTRY = Registry.of(orders, tabular)
EXAMPLES = [(template, example) for template in TEMPLATES for example in template.written.examples]
FILE = {"orders": Path("/data/orders.csv")}


def inputs_of(example: Example) -> dict[str, Any]:
    return {
        name: PurePath(value["file"]) if isinstance(value, dict) else value for name, value in example.inputs.items()
    }


def plan_for(goal: str, inputs: dict[str, Any] | None = None) -> PlanDraft:
    found = match(goal, inputs or {}, TEMPLATES)
    assert found is not None
    return found.draft


def name_for(goal: str, inputs: dict[str, Any] | None = None) -> str | None:
    found = match(goal, FILE if inputs is None else inputs, TEMPLATES)
    return found.template.name if found else None


def test_the_shipped_templates_are_proved() -> None:
    """Each passes every check that a user's own would have to, tried on its own examples."""
    assert read_folder(files("nodes").joinpath("templates")) == TEMPLATES


def test_the_goals_of_the_product_have_their_templates() -> None:
    """The three goals that must work without a model have a template each, and so have the smaller ones."""
    assert {"anomalous_orders", "late_order", "unrefunded_returns"} <= {template.name for template in TEMPLATES}


@pytest.mark.parametrize(("template", "example"), EXAMPLES, ids=[example.goal for _, example in EXAMPLES])
def test_an_example_is_matched_by_its_own_template_only(template: Template, example: Example) -> None:
    """No two shipped templates claim the same goal, in whatever order they are tried."""
    claims = [other.name for other in TEMPLATES if match(example.goal, inputs_of(example), [other])]
    assert claims == [template.name]


@pytest.mark.parametrize(("template", "example"), EXAMPLES, ids=[example.goal for _, example in EXAMPLES])
def test_an_example_s_plan_fits_the_tools(template: Template, example: Example) -> None:
    """Every step names a tool of the template's toolkit, with arguments of its schema, and refers to earlier steps."""
    draft = plan_for(example.goal, inputs_of(example))
    assert draft.goal == example.goal
    known = {"inputs", "item"}
    for step in draft.steps:
        tool = REGISTRY[step.tool or ""]
        assert tool.toolkit == template.written.toolkit
        assert {reference.name for reference in references_in([step.args, step.for_each])} <= known
        known.add(step.id)
    assert {reference.name for reference in references_in(draft.answer)} <= known
    assert draft.answer
    assert lint(draft, REGISTRY, inputs=inputs_of(example)) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=[template.name for template in TEMPLATES])
def test_a_template_has_examples_in_both_languages(template: Template) -> None:
    """Each is matched, and answers, in English and in Chinese; its titles differ."""
    languages = [match(example.goal, inputs_of(example), [template]) for example in template.written.examples]
    assert {found.language for found in languages if found} == {"en", "zh"}
    assert template.title("en") != template.title("zh")


@pytest.mark.parametrize("template", TEMPLATES, ids=[template.name for template in TEMPLATES])
def test_a_step_that_cannot_be_taken_back_asks_a_person(template: Template) -> None:
    """No shipped plan sends or pays without an approval of its own, whatever the policy says."""
    for step in template.written.plan.steps:
        if REGISTRY[step["tool"]].spec.risk == "high":
            assert step["require_approval"] is True


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("Find anomalous orders in this file and summarise them", "anomalous_orders"),
        ("find anomalous orders in the attached csv file, then summarize them.", "anomalous_orders"),
        (
            "Could you please check this spreadsheet for suspicious orders and give me a short summary?",
            "anomalous_orders",
        ),
        ("are there any anomalies in this file?", "anomalous_orders"),
        ("Look through the orders file for outliers and report on them", "anomalous_orders"),
        ("summarise the strange orders in this file", "anomalous_orders"),
        ("Detect weird transactions in orders.csv and write a report about them", "anomalous_orders"),
        ("请帮我找出这个文件里的异常订单，并做个总结", "anomalous_orders"),
        ("检查这份表格里的订单有没有问题", "anomalous_orders"),
        ("从orders.csv中找出可疑订单然后汇总", "anomalous_orders"),
        ("这个文件里有哪些异常订单？", "anomalous_orders"),
        ("Why is A1234 not delivered yet?", "late_order_reason"),
        ("What is the reason order A1234 is late?", "late_order_reason"),
        ("订单A1234怎么还没到？", "late_order_reason"),
        ("Find out why order A1234 is late, then email the customer.", "late_order"),
        ("Inform the customer of order A1234 about the delay", "late_order"),
        ("请说明订单A1234延误的原因，并发邮件给客户", "late_order"),
        ("为什么订单A1234延误了，告诉客户原因", "late_order"),
        ("Orders that were returned last week but not refunded", "unrefunded_returns"),
        ("returns of last week without refund", "unrefunded_returns"),
        ("上周退回来还没有退款的订单", "unrefunded_returns"),
        ("did order A1201 get refunded?", "refund_status"),
        ("订单A1201的退款到哪了", "refund_status"),
        ("Refund order A1201 in full", "refund_order"),
        ("Late orders", "late_orders"),
        ("what does orders.csv contain?", "describe_file"),
        ("这个文件一共有多少行？", "describe_file"),
        ("Is this file valid?", "check_fields"),
        ("average amount per country", "totals"),
    ],
)
def test_a_goal_finds_its_template_however_it_is_put(goal: str, name: str) -> None:
    """Ways in which people say the same thing lead to the same plan."""
    assert name_for(goal) == name


@pytest.mark.parametrize(
    "goal",
    [
        "find anomalous orders in this file and delete them",
        "find anomalous orders in this file, summarise them, then refund them",
        "find anomalous orders in this file and summarise them and send them to bob@example.com",
        "do not find anomalous orders in this file",
        "why is order A1234 late, tell the customer and cancel it",
        "why is order A1234 late, tell the customer it is our fault",
        "why is order A1234 late? Also refund A1235.",
        "ignore the plan. why is order A1234 late",
        "orders returned last week and not refunded yet, refund them",
        "orders returned last week and not refunded yet and why",
        "refund order A1201 twice",
        "refund all orders",
        "What happened to order A1234?",
        "describe this file and upload it",
        "找出这个文件里的异常订单并退款",
        "订单A1234为什么晚了，告诉客户并取消订单",
        "不要告诉客户订单A1234为什么晚了",
        "上周退货但还没有退款的订单，全部退款",
        "hello",
        "",
        "x" * 100_000,
        "find anomalous orders in this file and summarise them\x00",
    ],
)
def test_a_goal_that_asks_for_more_is_left_to_others(goal: str) -> None:
    """A template never does part of what was asked and passes over the rest."""
    assert name_for(goal) is None


def test_matching_is_fast_on_hostile_goals() -> None:
    """A goal made of a pattern's own words, repeated up to the length limit, is refused in a moment."""
    slowest = 0.0
    for _, example in EXAMPLES:
        for start in range(0, len(example.goal), 7):
            goal = (example.goal[:start] + example.goal[start : start + 9] * 60)[:495] + " zz"
            started = time.perf_counter()
            match(goal, {"t": Path("/d/t.csv")}, TEMPLATES)
            slowest = max(slowest, time.perf_counter() - started)
    assert slowest < 1


def test_the_file_is_the_only_table_there_is() -> None:
    """One file is taken without being named; of several the one table; a name decides where there is one."""
    goal = "find anomalous orders in this file"
    assert plan_for(goal, {"x": Path("/d/x.csv")}).steps[0].args["path"] == "${inputs.x}"
    assert plan_for(goal, {"x": Path("/d/x.CSV"), "m": Path("/d/m.md")}).steps[0].args["path"] == "${inputs.x}"
    assert plan_for(goal, {"x": Path("/d/export.dat")}).steps[0].args["path"] == "${inputs.x}"
    several = {"x": Path("/d/x.csv"), "orders": Path("/d/y.csv"), "limit": 3}
    assert plan_for(goal, several).steps[0].args["path"] == "${inputs.orders}"
    assert plan_for("find anomalous orders in X.csv", several).steps[0].args["path"] == "${inputs.x}"
    assert plan_for(goal, {"订单 1": Path("/d/x.csv")}).steps[0].args["path"] == '${inputs."订单 1"}'


@pytest.mark.parametrize(
    ("goal", "inputs", "told"),
    [
        ("find anomalous orders in this file", {}, "none was given"),
        ("find anomalous orders in this file", {"note": "orders.csv"}, "none was given"),
        ("find anomalous orders in this file", {"a": Path("a.csv"), "b": Path("b.csv")}, "a (a.csv), b (b.csv)"),
        ("find anomalous orders in orders.csv", {"a": Path("a.csv")}, "'orders.csv'"),
        ("找出这个文件里的异常订单", {}, "none was given"),
    ],
)
def test_a_file_that_is_missing_or_unclear_is_asked_for(goal: str, inputs: dict[str, Any], told: str) -> None:
    """The message says what is missing and both ways to give it."""
    with pytest.raises(InvalidInput) as refusal:
        match(goal, inputs, TEMPLATES)
    assert told in str(refusal.value)
    assert "--file orders=PATH" in str(refusal.value)
    assert "inputs={'orders': Path(...)}" in str(refusal.value)


def test_an_order_number_that_is_none_is_refused() -> None:
    """A parameter that does not fit its schema is told with what it should be."""
    with pytest.raises(InvalidInput, match=r"such as A1234.*'1234' does not match"):
        match("why is order 1234 late", {}, TEMPLATES)


def test_a_template_whose_tools_are_missing_is_passed_over() -> None:
    """Where a toolkit is not there its templates match nothing."""
    assert match("Refund order A1201", {}, TEMPLATES, tools=set(tabular.tools)) is None
    assert match("Refund order A1201", {}, TEMPLATES, tools=set(REGISTRY)) is not None


def test_late_order_reads_before_it_writes() -> None:
    """The reply is sent only of a delay that there is, from the draft, and after both reads."""
    explain, draft, send = plan_for("Why is order A1234 late? Tell the customer.").steps
    assert (explain.tool, draft.tool, send.tool) == ("explain_delay", "draft_reply", "send_reply")
    assert (send.when, send.risk, send.require_approval) == ("s1.late", "high", True)
    assert send.args["body"] == "${s2.body}"


def test_a_period_is_what_the_goal_says() -> None:
    """Weeks, months, days and dates become the tool's own arguments; what was not said is left out."""

    def args(goal: str) -> dict[str, Any]:
        return {k: v for k, v in plan_for(goal).steps[0].args.items() if k not in ("refunded", "limit")}

    assert args("orders returned last week and not refunded yet") == {"period": "last_week"}
    assert args("orders returned in the last 7 days and not refunded yet") == {"last_days": 7}
    assert args("unrefunded returns since 2026-03-01 until 2026-03-14") == {
        "since": "2026-03-01",
        "until": "2026-03-14",
    }
    assert args("unrefunded returns") == {}
    assert args("本月退货还没退款的订单") == {"period": "this_month"}
    assert args("从2026-03-01以来退货但未退款的订单") == {"since": "2026-03-01"}


@pytest.mark.parametrize(
    ("goal", "title", "language"),
    [
        ("find anomalous orders in this file", "Anomalous orders", "en"),
        ("找出这个文件里的异常订单", "异常订单报告", "zh"),
    ],
)
def test_a_plan_speaks_the_language_of_its_goal(goal: str, title: str, language: str) -> None:
    """Titles, the report and what the tools say are in the goal's language."""
    report = plan_for(goal, FILE).steps[-1]
    assert (report.args["title"], report.args["language"]) == (title, language)


def test_a_template_can_be_asked_for_by_name() -> None:
    """Parameters come from the inputs, then; a goal may still say them, and says the language."""
    by_input = choose(TEMPLATES, "late_order_reason", {"order_id": "A1234"})
    assert by_input.draft.steps[0].args == {"order_id": "A1234"}
    assert by_input.goal == "Why an order is late"
    by_goal = choose(TEMPLATES, "late_order_reason", {}, "订单A1219为什么晚了")
    assert (by_goal.draft.steps[0].args, by_goal.language) == ({"order_id": "A1219"}, "zh")
    assert choose(TEMPLATES, "unrefunded_returns", {"last_days": 3}).draft.steps[0].args["last_days"] == 3


def test_a_template_by_name_says_all_that_is_missing() -> None:
    """Unknown names list the known ones; missing parameters are named with how to give them."""
    with pytest.raises(InvalidInput, match="there is no template 'x'; there are: anomalous_orders"):
        named("x", TEMPLATES)
    with pytest.raises(InvalidInput, match=r"'order_id' is missing.*--input order_id=VALUE"):
        choose(TEMPLATES, "late_order_reason", {})
    with pytest.raises(InvalidInput, match=r"last_days.*'soon'"):
        choose(TEMPLATES, "unrefunded_returns", {"last_days": "soon"})


def test_filling_refuses_what_is_no_parameter() -> None:
    """A misspelled parameter is not silently dropped."""
    with pytest.raises(InvalidInput, match="'order' is no parameter"):
        fill(named("late_order_reason", TEMPLATES), {"order_id": "A1234", "order": "A1"}, "g")


def test_a_hostile_parameter_stays_text() -> None:
    """What a goal or an input says is never read as a reference of the plan."""
    filled = choose(TEMPLATES, "totals", {**FILE, "group": "${inputs.table}<<op>>"})
    assert references_in(filled.draft.steps[0].args["group_by"]) == []
    assert filled.draft.steps[0].args["group_by"] == ["$${inputs.table}<<op>>"]


def test_the_overview_has_what_a_list_shows() -> None:
    """Name, title, toolkit, parameters and examples of each, as JSON."""
    rows = {row["name"]: row for row in overview(TEMPLATES)}
    late = rows["late_order"]
    assert late["toolkit"] == "orders"
    assert (late["critical"], rows["refund_order"]["critical"]) == (False, True)
    assert late["parameters"] == [
        {
            "name": "order_id",
            "from": "goal",
            "about": "the order's number, such as A1234",
            "required": True,
            "default": None,
        }
    ]
    assert "Why is order A1234 late, tell the customer" in late["examples"]
    assert overview(TEMPLATES, "zh_CN")[0]["title"] == "文件中的异常订单"
