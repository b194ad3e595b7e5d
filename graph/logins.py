"""Logins at the graph API, for the audit: each token once, and what is refused without a row for every attempt."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from checkpoints.audit import Audit
from plans.principals import Principal
from plans.values import JSON

if TYPE_CHECKING:
    from checkpoints.database import Database
    from graph.settings import Settings

MOST_TOKENS = 10_000
"""So many tokens are remembered; one that was forgotten is noted once more."""
REFUSED_EVERY_S = 10.0
"""How often refusals are noted at most: somebody who tries tokens by the thousand fills no table."""

Opening = Callable[[], "AbstractAsyncContextManager[Database]"]


class Logins:
    """Who has come in, and what was turned away, in the chain `logins`. A caller whose login cannot be recorded is not
    let in: what notes it raises DatabaseUnavailable."""

    def __init__(self, opening: Opening, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._opening = opening
        self._monotonic = monotonic
        self._known: OrderedDict[str, None] = OrderedDict()
        self._noting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._refused = 0
        self._refusals_from = 0.0

    async def accepted(self, authorization: str | None, principal: Principal) -> None:
        """Note a token the first time that this process sees it."""
        token = hashlib.sha256((authorization or "").encode()).hexdigest()
        async with self._noting.setdefault(token, asyncio.Lock()):  # a page's requests come in together
            if token not in self._known:
                await self._note_token(token, principal)
            self._known.move_to_end(token)

    async def _note_token(self, token: str, principal: Principal) -> None:
        told = {"tenant": principal.tenant, "roles": list(principal.roles), "token_sha256": token, "via": "graph API"}
        await self._note("login.accepted", principal.name, told)
        self._known[token] = None
        if len(self._known) > MOST_TOKENS:
            self._known.popitem(last=False)

    async def refused(self, why: str) -> None:
        """Note a refusal, or count it until the next may be noted."""
        self._refused += 1
        if self._monotonic() < self._refusals_from:
            return
        times = self._refused
        await self._note("login.refused", "", {"why": why, "times": times, "via": "graph API"})
        self._refusals_from = self._monotonic() + REFUSED_EVERY_S
        self._refused -= times

    async def _note(self, kind: str, subject: str, told: Mapping[str, JSON]) -> None:
        async with self._opening() as database:
            await Audit(database).note("logins", kind, subject, told)


def logins_of(settings: Settings) -> Logins:
    """The logins at a server with these settings. Its database is opened for each new token: they are few."""

    def opening() -> AbstractAsyncContextManager[Database]:
        from checkpoints.database import open_database

        return open_database(
            settings.database_url, settings.folder, pool_size=2, prepare_threshold=settings.prepare_threshold
        )

    return Logins(opening)
