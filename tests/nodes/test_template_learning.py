"""A template learned from a clean run: what becomes a parameter, what proves it, and which runs give none."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.fold import RunFold, fold
from nodes.state import Forked, InputFile, RunHead
from nodes.template_files import read_template
from nodes.template_learning import Learned, learned
from nodes.template_plans import Template, match
from nodes.templates import load_templates
from plans.errors import InvalidInput
from plans.plan import Plan, PlanDraft, Step
from tests.nodes.rows import Row, answered, decided, done, failed, planned
from tools.orders import orders
from tools.registry import Registry
from tools.tabular import tabular

REGISTRY = Registry.of(orders, tabular)
SHIPPED = load_templates()
GOAL = "List 5 late orders of the customer Ann and the status of A1234"
STEPS: list[dict[str, Any]] = [
    {"id": "s1", "tool": "find_orders", "args": {"customer": "Ann", "late": True, "limit": 5}},
    {"id": "s2", "tool": "get_order", "args": {"order_id": "A1234"}, "title": "Look A1234 up"},
]
ANSWER = "Ann: ${s1.matches}; A1234 is ${s2.status}"


def run_of(
    goal: str = GOAL,
    steps: list[dict[str, Any]] = STEPS,
    *rows: Row,
    answer: str | None = ANSWER,
    status: str = "done",
    **head: Any,
) -> RunFold:
    """The picture of a run of this plan, with these rows between its plan and its end."""
    about = RunHead(run_id="r1", thread_id="t", request_id="q", goal=goal, **head)
    plan = Plan(plan_id="p", goal=goal, steps=tuple(Step(**step) for step in steps), source="model", answer=answer)
    ends = [done(step["id"]) for step in steps] if not rows else []
    end: Row = ("finish", None, 0, {"status": status, "failures": [], "wall_s": 1.0})
    return fold([("run", None, 0, {"head": about.model_dump(mode="json")}), planned(plan), *rows, *ends, end])


def learn(picture: RunFold, name: str | None = None) -> Learned:
    return learned(picture, REGISTRY, SHIPPED, name)


def plan_by(found: Learned, goal: str, inputs: dict[str, Any] | None = None) -> PlanDraft | None:
    """What the learned template makes of a goal."""
    written, faults = read_template(found.text)
    assert written is not None, faults
    filled = match(goal, inputs or {}, [Template(written)])
    return filled.draft if filled else None


def test_what_the_goal_says_becomes_a_parameter() -> None:
    """The template gives its own plan for its own goal, and another goal's plan for that."""
    found = learn(run_of())
    again = plan_by(found, GOAL)
    assert again is not None
    assert [step.args for step in again.steps] == [step["args"] for step in STEPS]
    assert again.answer == ANSWER
    other = plan_by(found, "list 20 late orders of the customer Li and the status of A1219, please")
    assert other is not None
    assert other.steps[0].args == {"customer": "Li", "late": True, "limit": 20}
    assert (other.steps[1].args, other.steps[1].title) == ({"order_id": "A1219"}, "Look A1219 up")
    assert other.answer == "Li: ${s1.matches}; A1219 is ${s2.status}"
    assert plan_by(found, f"{GOAL} and cancel it") is None


def test_a_parameter_may_be_what_the_tool_takes() -> None:
    """Its schema is the argument's own; what a closed choice has decided stays as it is."""
    body = yaml.safe_load(learn(run_of()).text)
    assert body["parameters"]["order_id"]["schema"]["pattern"] == "^[Aa][0-9]{3,9}$"
    assert body["parameters"]["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200}
    goal = "Which orders are shipped for A1234"
    steps = [{"id": "s1", "tool": "find_orders", "args": {"status": "shipped"}}]
    assert set(yaml.safe_load(learn(run_of(goal, steps, answer=None)).text)["parameters"]) == set()


def test_files_and_inputs_become_parameters() -> None:
    """A file by its suffix, an input by its name; another file and another input give another plan."""
    goal = "Total per country above my threshold in sales.csv"
    steps = [
        {"id": "s1", "tool": "describe_table", "args": {"path": "${inputs.sales}"}},
        {"id": "s2", "tool": "find_orders", "args": {"country": "${inputs.land}", "limit": 9}, "depends_on": ["s1"]},
    ]
    file = InputFile(path="/data/sales.csv", size=1, sha256="0")
    found = learn(run_of(goal, steps, answer=None, inputs={"land": "DE"}, files={"sales": file}))
    body = yaml.safe_load(found.text)["parameters"]
    assert (body["sales"]["from"], body["sales"]["suffixes"], body["land"]["from"]) == ("file", [".csv"], "input")
    other = plan_by(found, goal.replace("sales", "march"), {"m": PurePath("/x/march.csv"), "land": "FR"})
    assert other is not None
    assert [step.args for step in other.steps] == [{"path": "${inputs.m}"}, {"country": "FR", "limit": 9}]
    with pytest.raises(InvalidInput, match="'land' is missing"):
        plan_by(found, goal, {"sales": PurePath("/x/sales.csv")})


def test_a_value_that_stands_twice_must_be_the_same_twice() -> None:
    """Two values of one goal are never mixed up: where one number was meant twice, two different ones match nothing."""
    goal = "compare order A1234 with A1219 and A1234 again"
    steps = [
        {"id": "a", "tool": "get_order", "args": {"order_id": "A1234"}},
        {"id": "b", "tool": "get_order", "args": {"order_id": "A1219"}},
    ]
    found = learn(run_of(goal, steps, answer=None))
    other = plan_by(found, "compare order A1 with A1300 and A1 again".replace("A1 ", "A1111 "))
    assert other is not None
    assert [step.args["order_id"] for step in other.steps] == ["A1111", "A1300"]
    assert plan_by(found, "compare order A1111 with A1300 and A2222 again") is None


def test_chinese_goals_are_learned_from() -> None:
    """The pattern is Chinese, and ids stand between characters without a space."""
    steps = [{"id": "s1", "tool": "get_order", "args": {"order_id": "A1234"}}]
    found = learn(run_of("查看订单A1234的收货地址", steps, answer=None))
    other = plan_by(found, "请查看订单 A1219 的收货地址")
    assert other is not None
    assert other.steps[0].args == {"order_id": "A1219"}


def test_what_of_an_effect_stays_the_same_is_told() -> None:
    """A recipient that the goal does not name would be written to every time: a person is shown it."""
    steps = [{"id": "s1", "tool": "send_reply", "args": {
        "order_id": "A1234", "recipient": "boss@x.example", "subject": "A1234", "body": "see A1234"}}]  # fmt: skip
    found = learn(run_of("report A1234 upwards", steps, answer=None))
    assert any("recipient = boss@x.example" in note for note in found.notes)
    assert "# Always the same: s1 (send_reply) recipient = boss@x.example" in found.text
    assert not any("order_id" in note for note in found.notes)


@pytest.mark.parametrize(
    ("picture", "told"),
    [
        (run_of(status="failed"), "it is not done"),
        (run_of(GOAL, STEPS, failed("s1"), decided("s1", 1, "retry"), done("s1", 2), done("s2")), "took 2 attempts"),
        (run_of(GOAL, STEPS, ("outcome", "s1", 1, {"output": {"output_ref": "x", "size": 1}, "degraded": "a mock"}),
                done("s2")), "not what was asked for"),
        (run_of(GOAL, STEPS, answered("s1", {"type": "edit", "args": {}}), done("s1"), done("s2")), "changed its plan"),
        (run_of(GOAL, STEPS, answered("s1", {"type": "reject"}), done("s1"), done("s2")), "person has rejected"),
        (run_of(GOAL, [{**STEPS[1], "args": {"order_id": "${inputs.x[0].id}"}}], inputs={"x": [{"id": "A1"}]}),
         "reads a part of an input"),
        (run_of(forked=Forked(run_id="r0", thread_id="t0", step_id="s1")), "was forked"),
        (run_of("why is order A1234 late"), "'late_order_reason' matches its goal already"),
        (run_of("look " + "at it " * 90), "at most 500"),
        (run_of(GOAL, [{**STEPS[0], "when": "inputs.x == 'A1234'"}, STEPS[1]]), "pass it as an argument"),
        (run_of("open A1234 with password=hunter2secret"), "looks like a secret"),
        (run_of(GOAL, [{**STEPS[1], "args": {"order_id": "A1234", "note": "api_key: sk-1234567890abcdef"}}]),
         "looks like a secret"),
    ],
)  # fmt: skip
def test_a_run_that_is_not_clean_gives_no_template(picture: RunFold, told: str) -> None:
    """Every reason is told."""
    with pytest.raises(InvalidInput, match="gives no template") as refused:
        learn(picture)
    assert told in str(refused.value)


def test_all_reasons_are_told_at_once() -> None:
    """Whoever mends one does not meet the next."""
    rows = [failed("s1"), decided("s1", 1, "local_replan", "NOT_FOUND")]
    with pytest.raises(InvalidInput) as refused:
        learn(run_of(GOAL, STEPS, *rows, status="failed"))
    assert "it is not done (failed)" in str(refused.value)
    assert "planned anew (NOT_FOUND)" in str(refused.value)


def test_words_with_a_secret_are_blanked_where_nothing_depends_on_them() -> None:
    """A reason may quote one; the plan stays the same."""
    step = {**STEPS[1], "reason": "because the api_key: sk-1234567890abcdef is known"}
    found = learn(run_of(GOAL, [STEPS[0], step]))
    assert "sk-1234567890abcdef" not in found.text
    assert "***" in found.text


@pytest.mark.parametrize(("name", "told"), [("late_order", "is a template"), ("Late order", "is no name")])
def test_a_name_must_be_free_and_a_name(name: str, told: str) -> None:
    """It is the file's name, too."""
    with pytest.raises(InvalidInput, match=told):
        learn(run_of(), name)


def test_a_template_that_would_take_another_s_goals_is_refused() -> None:
    """A pattern that is too wide shows at the examples of the others."""
    goal = "Refund A1201"
    steps = [{"id": "s1", "tool": "get_order", "args": {"order_id": "A1201"}}]
    without = [template for template in SHIPPED if template.name != "refund_order"]
    assert learned(run_of(goal, steps, answer=None), REGISTRY, without).name == "refund"
    with pytest.raises(InvalidInput, match="matches its goal already"):
        learn(run_of(goal, steps, answer=None))


_SAID = ["check", "the", "stock", "of", "item", "please", "with", "note", "A1", "42", "7", "x-9", "(b)", "a.b", "$5"]
_WORDS = st.lists(st.sampled_from(_SAID), min_size=2, max_size=9)


@settings(max_examples=40)
@given(words=_WORDS, value=st.text(min_size=1, max_size=8), number=st.integers(0, 99))
def test_whatever_a_goal_says_its_template_gives_its_plan_or_there_is_none(
    words: list[str], value: str, number: int
) -> None:
    """No goal, however odd, gives a template that plans something else for it, or breaks the reader."""
    goal = " ".join([*words, value.strip() or "v", str(number)])
    steps = [{"id": "s1", "tool": "find_orders", "args": {"customer": value.replace("$", "") or "v", "limit": number}}]
    try:
        found = learn(run_of(goal, steps, answer=None))
    except InvalidInput:
        return
    again = plan_by(found, goal)
    assert again is not None
    assert again.steps[0].args == steps[0]["args"]
