"""The options and arguments that several commands share, each as Typer reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ApproveMode = Literal["ask", "all", "none"]

Toolkits = Annotated[
    list[str] | None, typer.Option("--toolkit", metavar="MODULE:ATTR", help="Add a toolkit of your own; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, everything else on stderr.")]
Approve = Annotated[
    ApproveMode, typer.Option("--approve", help="Before risky steps: ask a person, or allow all or none.")
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", metavar="NAME=VALUE", help="A named input, JSON or text; repeatable.")
]
Files = Annotated[list[str] | None, typer.Option("--file", metavar="NAME=PATH", help="A named input file; repeatable.")]
LimitOptions = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=N", help="A cap, such as max_steps=20 or max_wall_s=60; repeatable."),
]
Role = Annotated[
    str | None, typer.Option("--role", metavar="ROLE", help="Act in this one of your roles (SURESTEP_ROLES).")
]
Eager = Annotated[bool, typer.Option("--eager", help="Begin to read while the model still writes the plan.")]
Review = Annotated[bool, typer.Option("--review", help="Show the plan and wait for a yes before anything runs.")]
ReviewReplans = Annotated[bool, typer.Option("--review-replans", help="The same for every later revision of it too.")]
Template = Annotated[str | None, typer.Option("--template", metavar="NAME", help="Use this template.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Use this plan (JSON or YAML; - is stdin).")
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="The thread to run on; default: a new one.")]
Request = Annotated[
    str | None, typer.Option("--request-id", metavar="ID", help="The same id twice is one run and one answer.")
]
Goal = Annotated[str | None, typer.Argument(metavar="GOAL", help="What should be done, in plain language.")]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The thread that the run is on.")]
Plans = Annotated[
    bool, typer.Option("--plans", help="List every draft of a plan, by whom, and what was wrong; --raw N prints one.")
]
StepId = Annotated[str, typer.Argument(metavar="STEP", help="The step that waits.")]
Age = Annotated[str, typer.Option("--older-than", metavar="AGE", help="Runs that ended so long ago: 12h, 7d, 2w.")]
Every = Annotated[
    float | None, typer.Option("--every", metavar="SECONDS", min=0.1, help="Again every so often, until stopped.")
]
Erase = Annotated[
    str | None, typer.Option("--erase", metavar="THREAD", help="Erase this thread everywhere, for good, instead.")
]
