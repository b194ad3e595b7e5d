"""A run that a server drives goes on by that server: whoever decides, or sweeps, creates the next run there (rule 20).

A thread's checkpoints say which assistant of a server has begun its run. Where the server is, is a setting: an address
that stands in data is nowhere a token is sent to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from nodes.acting import own_drive
from plans.errors import ServerUnavailable

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot
    from langgraph_sdk.client import LangGraphClient

    from graph.settings import Settings
    from plans.principals import Principal


class Server:
    """The API of a server that runs the graph. Without a URL it is the one that this process is."""

    def __init__(self, url: str | None, token: str | None = None) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def go_on(self, thread_id: str, state: StateSnapshot, principal: Principal) -> None:
        """Have the server go on with a thread from where it is, and wait until it stands still again. A thread that is
        being driven there is gone on with afterwards, which changes nothing then. Another server is told by its token
        who asks for that, the one that this process is goes on for the principal. Raises ServerUnavailable."""
        import httpx
        from langgraph_sdk.errors import LangGraphError

        try:
            async with self._client() as client, self._for(thread_id, principal):
                await self._created(client, thread_id, state)
        except (httpx.HTTPError, LangGraphError) as error:
            raise ServerUnavailable(
                f"{self._url or 'this server'} did not go on with thread {thread_id} ({type(error).__name__}). What "
                "was decided is stored; `surestep sweep` goes on with it, or set SURESTEP_SERVER_URL and "
                "SURESTEP_SERVER_TOKEN to a server that serves this thread"
            ) from error

    @asynccontextmanager
    async def _for(self, thread_id: str, principal: Principal) -> AsyncIterator[None]:
        if self._url is not None:
            yield
            return
        with own_drive(thread_id, principal):
            yield

    def _client(self) -> LangGraphClient:
        from langgraph_sdk import get_client

        return get_client(url=self._url, api_key=None, headers=self._headers)

    async def _created(self, client: LangGraphClient, thread_id: str, state: StateSnapshot) -> None:
        named = _named(state)
        # A development server that was killed has forgotten the thread; its checkpoints are ours and are there.
        await client.threads.create(thread_id=thread_id, graph_id=named["graph_id"], if_exists="do_nothing")
        run = await client.runs.create(
            thread_id, named["assistant_id"], multitask_strategy="enqueue", **_go_on_from(state.interrupts)
        )
        await client.runs.join(thread_id, run["run_id"])


def is_served(state: StateSnapshot) -> bool:
    """Whether a server has brought the thread to where it is."""
    return all(_named(state).values())


def server_from(settings: Settings) -> Server | None:
    """The server of the settings, if one is named."""
    if settings.server_url is None:
        return None
    token = settings.server_token
    return Server(settings.server_url, token.get_secret_value() if token else None)


def _named(state: StateSnapshot) -> dict[str, Any]:
    metadata: dict[str, Any] = dict(state.metadata or {})
    return {name: metadata.get(name) for name in ("assistant_id", "graph_id")}


def _go_on_from(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """What was answered is read from the table, not from here."""
    return {"command": {"resume": {each.id: {} for each in interrupts}}} if interrupts else {"input": None}
