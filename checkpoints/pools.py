"""Pools of connections: how every connection of ours is made, checked and replaced."""

from __future__ import annotations

import logging
import math
import select
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow
    from psycopg_pool import AsyncConnectionPool

    Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

CONNECT_SECONDS = 10
"""How long one connection may take to be made, unless the URL says `connect_timeout`."""

WAIT_SECONDS = 30.0
"""How long to wait for a connection when all are lent, before it counts as a failure."""

_MAX_LIFETIME_S = 30 * 60.0
_MAX_IDLE_S = 5 * 60.0
_TRUSTED_S = 1.0
"""How long after its last check a connection is only looked at, and not asked."""

_used: WeakKeyDictionary[AsyncConnection[DictRow], float] = WeakKeyDictionary()

# The pool tries again by itself and says so each time; without logging set up Python prints that to the terminal.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


def new_pool(url: str, *, name: str, size: int, at_rest: int = 1, prepare_threshold: int | None = 5) -> Pool:
    """A pool, not opened yet, of connections that commit by themselves and give rows as dicts.

    At most `size` connections are open, `at_rest` without use. Each is checked before it is lent, replaced after 30
    minutes, and closed after 5 minutes without use.
    """
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool(
        url,
        min_size=at_rest,
        max_size=size,
        open=False,
        check=_check,
        timeout=WAIT_SECONDS,
        max_lifetime=_MAX_LIFETIME_S,
        max_idle=_MAX_IDLE_S,
        kwargs=connection_options(url, prepare_threshold) | {"row_factory": dict_row},
        name=name,
    )


async def _check(connection: AsyncConnection[DictRow]) -> None:
    """Raise OperationalError for a connection that is gone.

    A server that ends a session closes its socket, which is seen here without asking it. That it is asked all the same
    costs a round trip, and is done for a connection that has rested: a network may have lost it without a word.
    """
    from psycopg_pool import AsyncConnectionPool

    now = time.monotonic()
    rested = now - _used.get(connection, -math.inf)
    _used[connection] = now
    if rested > _TRUSTED_S or _has_news(connection.fileno()):
        await AsyncConnectionPool.check_connection(connection)


def _has_news(socket: int) -> bool:
    """Whether something has come on a socket on which nothing is awaited: its end, or why it ends."""
    poll = select.poll()
    poll.register(socket, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def connection_options(url: str, prepare_threshold: int | None, application_name: str = "surestep") -> dict[str, Any]:
    """How every connection of ours is made, where the URL does not say otherwise."""
    from psycopg.conninfo import conninfo_to_dict

    usual = {"connect_timeout": CONNECT_SECONDS, "application_name": application_name}
    said = conninfo_to_dict(url)
    return {name: value for name, value in usual.items() if name not in said} | {
        "autocommit": True,
        "prepare_threshold": prepare_threshold,
    }
