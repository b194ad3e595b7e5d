"""The rule that says which arguments are about money, and which judgements of models become money."""

from __future__ import annotations

from typing import Any

import pytest

from plans.money import MONEY, about_money, money_judgements
from plans.plan import StepDraft


def step(step_id: str, tool: str | None = None, **more: Any) -> StepDraft:
    """A step with a tool, or one that a model carries out."""
    kind = {"action": "llm", "instruction": "judge"} if tool is None else {"tool": tool}
    return StepDraft(id=step_id, **{**kind, **more})


def found(*steps: StepDraft) -> frozenset[str]:
    """The judgements about money in a plan where `pay` alone has an effect."""
    return money_judgements(steps, lambda each: each.tool == "pay")


@pytest.mark.parametrize(
    "name", [*sorted(MONEY), "refund_total", "unitPrice", "fees", "total-cost", "REFUND", "amountEUR"]
)
def test_a_word_of_the_name_makes_it_money(name: str) -> None:
    """However the words are joined, and in the plural too."""
    assert about_money(name)


@pytest.mark.parametrize("name", ["to", "text", "order_id", "priceless", "totally", "account", "feed", ""])
def test_other_names_are_not_money(name: str) -> None:
    """A word that only begins like one is another word."""
    assert not about_money(name)


def test_a_judgement_becomes_money_at_any_depth_and_by_way_of_other_steps() -> None:
    """Nested arguments, a step in between, and elements that a step goes over all lead back to it."""
    judging = step("j")
    assert found(judging, step("p", "pay", args={"amount": "${j.refund}"})) == {"j"}
    assert found(judging, step("p", "pay", args={"lines": [{"unit_price": "at ${j}"}]})) == {"j"}
    rounded = step("r", "round", args={"x": "${j.refund}"})
    assert found(judging, rounded, step("p", "pay", args={"total": "${r}"})) == {"j"}
    each = step("p", "pay", args={"amount": "${item.due}"}, for_each="${j.refunds}")
    assert found(judging, each) == {"j"}


def test_what_does_not_become_money_of_an_effect_is_no_judgement_about_it() -> None:
    """Another argument, a read, a judgement behind a later one, a cycle, and a name that nobody has."""
    judging = step("j")
    assert not found(judging, step("p", "pay", args={"text": "${j}", "amount": 3}))
    assert not found(judging, step("q", "quote", args={"amount": "${j}"}))
    assert found(judging, step("k", instruction="from ${j}"), step("p", "pay", args={"fee": "${k}"})) == {"k"}
    circle = [step("a", "round", args={"x": "${b}"}), step("b", "round", args={"x": "${a} ${nobody}"})]
    assert not found(*circle, step("p", "pay", args={"fee": "${a}"}))
