"""The compiled graph as clients of a server get it: they begin, instruct and answer runs, and write nothing else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import ValidationError

from nodes.state import AgentInput, AgentOutput, AgentState, Context
from plans.errors import InvalidInput, UsageError
from plans.values import dotted

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
    failed drops out of the lists of those that wait for somebody. A thread is gone on with from where it is: what names
    an older checkpoint is taken for the newest, and an answer to what was asked there is none to what is asked now.
    """

    def stream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """LangGraph's, of what may come in."""
        return super().stream(_let_in(input), config, **more)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """LangGraph's, of what may come in."""
        given = _let_in(input)
        if config is not None and (named := config.get("configurable", {}).get("checkpoint_id")) is not None:
            config = _newest(config)
            if isinstance(given, Command) and named != (await self._at(config)):
                given = None
        try:
            async for said in super().astream(given, config, **{**more, "context": _context(more.get("context"))}):
                yield said
        except UsageError as error:
            error.__class__ = _told_to_clients(type(error))
            raise

    async def _at(self, config: RunnableConfig) -> str | None:
        """The thread's newest checkpoint."""
        found: str | None = (await self.aget_state(config)).config["configurable"].get("checkpoint_id")
        return found

    def bulk_update_state(self, *_: Any, **__: Any) -> RunnableConfig:
        """Raises NotFromOutside."""
        raise _refused()

    async def abulk_update_state(self, *_: Any, **__: Any) -> RunnableConfig:
        """Raises NotFromOutside."""
        raise _refused()


def one_door(graph: StateGraphOfRuns) -> OneDoor:
    """The same graph with all doors closed but the one for goals, instructions and answers."""
    return OneDoor(**vars(graph))


def _told_to_clients(kind: type[UsageError]) -> type[UsageError]:
    """The same kind of error, whose sentence a LangGraph server tells to who has sent what it is about: of others than
    Python's own it tells that there was one."""
    return kind if issubclass(kind, ValueError) else type(kind.__name__, (kind, ValueError), {"__doc__": kind.__doc__})


def _context(given: Any) -> Any:
    """What a caller says beside its input, read. Raises InvalidInput, which says what may be said."""
    if not isinstance(given, Mapping):
        return given
    try:
        return Context.model_validate(given)
    except ValidationError as error:
        wrong = sorted({dotted(each["loc"]) for each in error.errors()})
        raise InvalidInput(
            f"the context says what cannot be said there: {', '.join(wrong)}. It may have `approve` (ask or none), "
            "`role` (one of the caller's), `review` (first or every) and `limits`"
        ) from None


def _newest(config: RunnableConfig) -> RunnableConfig:
    place = {name: value for name, value in config["configurable"].items() if name != "checkpoint_id"}
    return {**config, "configurable": place}


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
