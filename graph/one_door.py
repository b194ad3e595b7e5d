"""The compiled graph as clients of a server get it: they begin, instruct and answer runs, and write nothing else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from nodes.state import AgentInput, AgentOutput, AgentState, Context
from plans.errors import InvalidInput

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

log = logging.getLogger(__name__)

StateGraphOfRuns = CompiledStateGraph[AgentState, Context, AgentInput, AgentOutput]


class NotFromOutside(InvalidInput, InvalidUpdateError):
    """What only the nodes write was to be written by somebody else. A LangGraph server answers it with HTTP 400."""


class OneDoor(StateGraphOfRuns):
    """State is written by nodes alone: what it says of a plan, a question or an edge is what a node has decided.

    A command that carries an update or names a node goes to none: the thread is as it was and waits for an answer,
    also where an answer came with it, for that was about something else. It does not fail, since a thread that has
    failed drops out of the lists of those that wait for somebody.
    """

    def stream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """LangGraph's, of what may come in."""
        return super().stream(_let_in(input), config, **more)

    def astream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """LangGraph's, of what may come in."""
        return super().astream(_let_in(input), config, **more)

    def bulk_update_state(self, *_: Any, **__: Any) -> RunnableConfig:
        """Raises NotFromOutside."""
        raise _refused()

    async def abulk_update_state(self, *_: Any, **__: Any) -> RunnableConfig:
        """Raises NotFromOutside."""
        raise _refused()


def one_door(graph: StateGraphOfRuns) -> OneDoor:
    """The same graph with all doors closed but the one for goals, instructions and answers."""
    return OneDoor(**vars(graph))


def _let_in(given: Any) -> Any:
    if not isinstance(given, Command):
        return given
    if given.update or given.goto or given.graph:
        log.warning("a command that would update the state or go to a node was not followed; the thread is as it was")
        return None
    return given


def _refused() -> NotFromOutside:
    return NotFromOutside(
        "the state of a thread is written by its run alone. Send a goal or an instruction as input, answers by "
        "`command: {resume: …}`, and make a fork by `surestep fork`"
    )
