"""Planning prompts within a budget of tokens: what goes first, and how they say so."""

from __future__ import annotations

from nodes.budget import CUTS, HISTORY, fitted, tokens_of
from nodes.models import Model
from nodes.planner import FinishedStep, draft_plan, planning_prompt
from nodes.prompts import Rendered
from plans.plan import StepDraft
from tests.nodes.model_server import ScriptedModel, refused
from tools.orders.toolkit import orders
from tools.tabular.toolkit import tabular

TOOLS = [*orders.tools.values(), *tabular.tools.values()]
SHOT = ("my own goal", {"goal": "g", "steps": []})
FINISHED = [
    FinishedStep(StepDraft(id=f"s{n}", tool="get_order", args={"order_id": "A1"}), {"total": f"summary of s{n}"})
    for n in range(30)
]


def written(budget: int) -> Rendered:
    """The prompt for a run of thirty finished steps, within a budget."""
    return next(
        fitted(lambda cut: planning_prompt("my goal", {}, TOOLS, finished=FINISHED, few_shots=[SHOT], cut=cut), budget)
    )


def test_a_prompt_with_room_has_everything_but_an_endless_history() -> None:
    """Of thirty finished steps the newest twenty have a summary, the others are mentioned; that is said."""
    prompt = written(100_000)
    assert "my own goal" in prompt.rules
    assert [f"summary of s{n}" in prompt.task for n in (9, 10, 29)] == [False, True, True]
    assert '{"id":"s9","tool":"get_order"}' in prompt.task
    assert f"the results of the first {30 - HISTORY} finished steps" in prompt.task


def test_what_is_cut_goes_in_its_order_and_is_named() -> None:
    """Examples, then summaries, then schemas of results, then those of arguments, then what tools return."""
    sizes, kept = [], []
    for cut in CUTS:
        prompt = planning_prompt("my goal", {}, TOOLS, finished=FINISHED, few_shots=[SHOT], cut=cut)
        sizes.append(tokens_of(prompt))
        signs = "my own goal" in prompt.rules, "summary of s15" in prompt.task, '"result":{' in prompt.rules
        kept.append((*signs, '"arguments":{' in prompt.rules, '"result":' in prompt.rules))
    assert sizes == sorted(sizes, reverse=True)
    assert kept == [
        (True, True, True, True, True),
        (False, True, True, True, True),
        (False, False, True, True, True),
        (False, False, False, True, True),
        (False, False, False, False, True),
        (False, False, False, False, False),
    ]


def test_a_prompt_keeps_within_its_budget_or_is_the_shortest_there_is() -> None:
    """Whatever the budget, the goal and every tool's name and arguments are in it."""
    for budget in (20_000, 12_000, 8_000, 4_500, 100):
        prompt = written(budget)
        assert tokens_of(prompt) <= budget or prompt == written(1)
        assert "my goal" in prompt.task
        assert all(f'"name":"{tool.name}"' in prompt.rules for tool in TOOLS)
        assert "order_id" in prompt.rules
    assert "To keep this short, some things are left out: examples;" in written(1).task


async def test_an_endpoint_that_finds_a_prompt_too_long_gets_shorter_ones(
    model: Model, endpoint: ScriptedModel
) -> None:
    """Without examples, and then the shortest; no more than three are sent."""
    too_long = refused(400, "maximum context length is 100 tokens", "context_length_exceeded")
    endpoint.answers(too_long, too_long, "no plan")
    await draft_plan(model, "g", {}, TOOLS, few_shots=[SHOT])
    assert len(endpoint.prompt(2)) * 3 < len(endpoint.prompt(1))
    assert ["my own goal" in endpoint.prompt(number) for number in range(3)] == [True, False, False]
