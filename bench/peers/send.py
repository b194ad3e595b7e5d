"""LangGraph's graph: an orchestrator that sends each ready step to a worker, on the stock Postgres saver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

from bench.peers.stock import stock_saver
from bench.work import FirstTry, Work


def merged(one: dict[int, Any], other: dict[int, Any]) -> dict[int, Any]:
    """The results of both."""
    return {**one, **other}


class State(TypedDict):
    """The results so far, by step."""

    done: Annotated[dict[int, Any], merged]


class Given(TypedDict):
    """What a worker is sent."""

    number: int


class Waves:
    """One graph per recipe; a wave of workers is a superstep, and the orchestrator between two waves another."""

    def __init__(self, saver: AsyncPostgresSaver, durability: Literal["sync", "async"]) -> None:
        self._saver = saver
        self._durability = durability

    async def run(self, work: Work) -> None:
        """One thread per copy."""
        graph = self._graph(work)
        names = [f"{work.recipe.name}-{copy}" for copy in range(work.recipe.copies)]
        await asyncio.gather(*(self._one(graph, work, name, {"done": {}}) for name in names))

    async def resume(self, work: Work) -> None:
        """Go on with a thread whose driver was killed."""
        await self._one(self._graph(work), work, f"{work.recipe.name}-0", None)

    async def _one(self, graph: Any, work: Work, thread_id: str, given: Any) -> None:
        config = {"configurable": {"thread_id": thread_id}, "recursion_limit": 100_000}
        state = await graph.ainvoke(given, config, durability=self._durability)
        if len(state["done"]) != len(work.tasks):
            raise RuntimeError(f"{thread_id} has {len(state['done'])} results of {len(work.tasks)}")

    def _graph(self, work: Work) -> Any:
        places = asyncio.Semaphore(work.recipe.concurrency)

        async def step(given: Given) -> dict[str, Any]:
            async with places:
                return {"done": {given["number"]: await work.perform(given["number"])}}

        def orchestrate(_state: State) -> dict[str, Any]:
            return {}

        def ready(state: State) -> list[Send] | str:
            done = state["done"]
            found = [task.number for task in work.tasks if task.number not in done and done.keys() >= set(task.after)]
            return [Send("step", {"number": number}) for number in found] or END

        again = RetryPolicy(initial_interval=work.recipe.wait_s, max_attempts=2, jitter=False, retry_on=FirstTry)
        flow: Any = StateGraph(State)
        flow.add_node("orchestrate", orchestrate)
        flow.add_node("step", step, retry_policy=again)
        flow.add_edge(START, "orchestrate")
        flow.add_conditional_edges("orchestrate", ready, ["step", END])
        flow.add_edge("step", "orchestrate")
        return flow.compile(checkpointer=self._saver)


@asynccontextmanager
async def opened(name: str, url: str, _folder: Path, _found: Work | None) -> AsyncIterator[Waves]:
    """The saver's tables, made by the saver."""
    async with stock_saver(url) as saver:
        yield Waves(saver, "sync" if name == "send-sync" else "async")
