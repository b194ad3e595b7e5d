"""Plans every goal of a dataset and scores the plans, through LangSmith's evaluator and without sending it anything."""

from __future__ import annotations

import io
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pydantic import BaseModel, ConfigDict

from evals.dataset import Expected, Goal
from evals.evaluators import MEASURES
from plans.errors import SurestepError
from plans.plan import Plan

Planner = Callable[[str, dict[str, Path]], Awaitable[Plan]]
"""Gives the plan for a goal and its input files, or raises a SurestepError."""


class Scored(BaseModel):
    """One goal with its scores; `error` says why there is no plan."""

    model_config = ConfigDict(frozen=True)

    id: str
    goal: str
    scores: dict[str, float]
    tools: tuple[str, ...] = ()
    source: str | None = None
    error: str | None = None


class Experiment(BaseModel):
    """All goals of a dataset, scored."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    goals: tuple[Scored, ...]

    @property
    def means(self) -> dict[str, float]:
        """Mean score of each measure."""
        return {name: sum(goal.scores[name] for goal in self.goals) / len(self.goals) for name in MEASURES}

    def under(self, bar: float) -> dict[str, float]:
        """The measures whose mean is under the bar."""
        return {name: mean for name, mean in self.means.items() if mean < bar}


async def run_experiment(dataset: Path, goals: Sequence[Goal], planner: Planner) -> Experiment:
    """Plan and score. A goal without a plan, and one whose evaluation fails, counts with 0 in every measure."""
    from langsmith import aevaluate

    # Both are needed: with upload_results=False alone a LangGraph target still posts its inputs.
    with untraced(), _without_remarks():
        results = await aevaluate(
            _target(planner, dataset.parent),
            data=[_example(goal) for goal in goals],
            evaluators=[_evaluator(name) for name in MEASURES],
            client=_offline_client(),
            upload_results=False,
            max_concurrency=4,
        )
        rows = [row async for row in results]
    scored = {found.id: found for found in map(_scored, rows)}
    return Experiment(dataset=dataset.name, goals=tuple(scored.get(goal.id) or _lost(goal) for goal in goals))


@contextmanager
def untraced() -> Iterator[None]:
    """Nothing in the block is traced, whatever the environment says: not even a client for it is made."""
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=False):
        yield


@contextmanager
def _without_remarks() -> Iterator[None]:
    """LangSmith prints the experiment's name, and warns that evaluating offline is new; stdout is the command's own."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="'upload_runs' parameter is in beta")
        yield


def _offline_client() -> Any:
    """A client that samples nothing and knows no key, whatever the environment says."""
    from langsmith import Client

    return Client(api_key="none", api_url="http://127.0.0.1:9", tracing_sampling_rate=0.0, auto_batch_tracing=False)


def _example(goal: Goal) -> Any:
    from langsmith.schemas import Example

    return Example(
        id=uuid5(NAMESPACE_URL, goal.id),
        inputs={"id": goal.id, "goal": goal.goal, "files": goal.files},
        outputs=goal.expected.model_dump(mode="json"),
    )


def _target(planner: Planner, folder: Path) -> Any:
    async def plan_goal(inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            plan = await planner(inputs["goal"], {name: folder / file for name, file in inputs["files"].items()})
        except SurestepError as error:
            return {"plan": None, "error": str(error)}
        return {"plan": plan.model_dump(mode="json"), "error": None}

    return plan_goal


def _evaluator(name: str) -> Any:
    def score(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> dict[str, Any]:
        written = outputs.get("plan")
        plan = Plan.model_validate(written) if written else None
        return {"key": name, "score": MEASURES[name](plan, Expected.model_validate(reference_outputs))}

    score.__name__ = name
    return score


def _scored(row: Any) -> Scored:
    given = {found.key: found.score for found in row["evaluation_results"]["results"]}
    outputs = row["run"].outputs or {}
    plan = outputs.get("plan") or {}
    return Scored(
        id=row["example"].inputs["id"],
        goal=row["example"].inputs["goal"],
        scores={name: float(given.get(name) or 0.0) for name in MEASURES},
        tools=tuple(step["tool"] for step in plan.get("steps", ()) if step.get("tool")),
        source=plan.get("template") or plan.get("source"),
        error=outputs.get("error") or row["run"].error,
    )


def _lost(goal: Goal) -> Scored:
    return Scored(id=goal.id, goal=goal.goal, scores=dict.fromkeys(MEASURES, 0.0), error="it was not evaluated")
