"""What a planning prompt is given of a run: the tools it may use now, its inputs, and what is finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodes.catalog import Unseen, summary
from nodes.clarify import may_not_ask
from nodes.origins import sentence
from nodes.planner import FinishedStep
from nodes.policing import actor_of, may_be_called
from nodes.state import RunHead
from nodes.tools_now import current_tools
from plans.plan import Step
from plans.policy import Policy
from plans.values import JSON
from tools.breaker import open_tools
from tools.permission import permitted
from tools.person import asks_user
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session
    from tools.ports import Ports
    from tools.registry import Registry

MOST_EXAMPLES = 2
"""Examples of one toolkit in a prompt: each costs some 200 tokens in every planning call."""


async def offered_tools(session: Session) -> list[Tool]:
    """The tools this run's role may use by their own word and by its policies, that are set up and switched on and
    whose breaker does not refuse them now; that which asks the user only where somebody answers."""
    may = await offered(await current_tools(session), session.head.role, session.engine.ports)
    found = allowed(session.fold.policies, may, session.head)
    return [tool for tool in found if not asks_user(tool) or may_not_ask(session) is None]


def allowed(policies: Sequence[Policy], tools: Iterable[Tool], head: RunHead) -> list[Tool]:
    """Those of the tools that no policy denies to this run whatever they are called with."""
    return [tool for tool in tools if may_be_called(policies, tool, actor_of(head))]


async def offered(tools: Mapping[str, Tool], role: str | None, ports: Ports) -> list[Tool]:
    """Those of the tools that a planner may count on now."""
    refusing = await open_tools(tools, ports)
    return [
        tool
        for tool in tools.values()
        if tool.enabled and tool.to_configure is None and tool.name not in refusing and permitted(tool.spec, role)
    ]


def examples(registry: Registry, offered: Iterable[Tool]) -> list[tuple[str, JSON]]:
    """What the toolkits show of how their tools are used, as goals and plans: of each the first few, and only where all
    the tools in a plan are offered."""
    names = {tool.name for tool in offered}
    return [
        (example.goal, dict(example.plan))
        for toolkit in registry.toolkits
        for example in [each for each in toolkit.examples if each.tools <= names][:MOST_EXAMPLES]
    ]


def prompt_inputs(head: RunHead) -> dict[str, Any]:
    """The run's inputs by name; a file is a Path, and what a stranger may have written is not seen."""
    seen = {name: Unseen(value) if name in head.untrusted else value for name, value in head.inputs.items()}
    return {**seen, **{name: Path(file.path) for name, file in head.files.items()}}


async def finished_steps(session: Session) -> list[FinishedStep]:
    """Steps that a new revision keeps, each with a summary of its result that may stand in a prompt."""
    finished = []
    for step in session.fold.kept():
        run = session.fold.run(step.id)
        result = await _result(session, step) if run.output is not None else {"status": run.status}
        finished.append(FinishedStep(step, result, sentence(session.fold, step.id)))
    return finished


async def _result(session: Session, step: Step) -> JSON:
    """What a prompt says of a result. The user's own words stand there as they are: they are no tool's."""
    value = await session.value(step.id)
    return value if asks_user(session.engine.registry.get(step.tool or "")) else summary(value)
