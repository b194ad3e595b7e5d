"""`surestep eval`: the subcommands that measure planning. `surestep.py` adds them to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evals.experiment import Experiment, Planner
    from graph.gateway import Agent
    from plans.plan import Plan

app = typer.Typer(help="Measure planning on goals with known answers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Measure planning on goals with known answers."""


@app.command()
def run(
    dataset: Annotated[Path | None, typer.Option("--dataset", metavar="FILE", help="JSONL; default: shipped.")] = None,
    bar: Annotated[float, typer.Option("--bar", min=0.0, max=1.0, help="Least mean score of each measure.")] = 0.0,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Where to write the JSON.")] = None,
    toolkit: Annotated[
        list[str] | None, typer.Option("--toolkit", metavar="MODULE:ATTR", help="Add a toolkit; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Plan every goal of a dataset and score the plans; exit 1 if a measure is under the bar."""
    experiment = _evaluated(dataset, toolkit or [])
    written = {"means": experiment.means, **experiment.model_dump(mode="json")}
    if output is not None:
        _write(output, written)
    if json:
        from graph.commands.shared import print_json

        print_json(written)
    else:
        _show(experiment, bar)
    if experiment.under(bar):
        raise typer.Exit(1)


def _evaluated(dataset: Path | None, toolkits: list[str]) -> Experiment:
    from evals.dataset import read_goals, shipped
    from evals.experiment import run_experiment, untraced
    from graph.commands.shared import opened, waited

    path = dataset or shipped()
    goals = read_goals(path)

    async def work() -> Experiment:
        with untraced():
            async with opened(toolkits) as agent:
                return await run_experiment(path, goals, _planner(agent))

    return waited(work)


def _planner(agent: Agent) -> Planner:
    async def planned(goal: str, files: dict[str, Path]) -> Plan:
        return (await agent.plan(goal, inputs=files)).plan

    return planned


def _write(output: Path, written: dict[str, object]) -> None:
    import json

    from plans.errors import StorageUnavailable

    try:
        output.write_text(json.dumps(written, ensure_ascii=False, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise StorageUnavailable(f"the scores cannot be written to {output}: {error.strerror}") from None


def _show(experiment: Experiment, bar: float) -> None:
    from rich.table import Table
    from rich.text import Text

    from evals.evaluators import MEASURES
    from graph.commands.shared import console

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("goal", *MEASURES, "plan"):
        table.add_column(name, justify="right" if name in MEASURES else "left")
    for goal in experiment.goals:
        scores = [Text(f"{goal.scores[name]:.2f}", style="" if goal.scores[name] == 1 else "red") for name in MEASURES]
        table.add_row(Text(goal.id), *scores, Text(goal.source or (goal.error or "")[:40], style="dim"))
    table.add_section()
    under = experiment.under(bar)
    means = [Text(f"{mean:.2f}", style="red" if name in under else "bold") for name, mean in experiment.means.items()]
    table.add_row(Text(f"mean of {len(experiment.goals)}"), *means, Text(f"bar {bar:.2f}", style="dim"))
    console().print(table)
