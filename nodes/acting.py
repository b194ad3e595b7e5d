"""Who is behind an invocation of the graph, and whether the run that it names is one of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import NotPermitted, UnknownThread
from plans.principals import Principal

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.session import Session
    from nodes.state import Context
    from tools.ports import Ports

SERVERS_WORD = "langgraph_auth_user"
"""Where a server that has authenticated a caller says who it is. It drops what a client sends under this name."""

_own_drives: dict[str, Principal] = {}
_acting: ContextVar[Principal | None] = ContextVar("acting", default=None)


@contextmanager
def acting(principal: Principal) -> Iterator[None]:
    """What is invoked in here is invoked by this one, whose right to it was looked at before."""
    token = _acting.set(principal)
    try:
        yield
    finally:
        _acting.reset(token)


@contextmanager
def own_drive(thread_id: str, principal: Principal) -> Iterator[None]:
    """A server goes on with this thread by itself: what it sends itself, without a caller, is this one's.

    Whoever comes from outside has somebody behind it, or is not let in. Only what this process sends itself has not.
    """
    _own_drives[thread_id] = principal
    try:
        yield
    finally:
        _own_drives.pop(thread_id, None)


def principal_of(engine: Engine, config: Mapping[str, Any] | None) -> Principal:
    """Who has sent an invocation. Raises NotPermitted where nobody is known to have."""
    known = known_principal(engine, config)
    if known is None:
        raise NotPermitted("nobody is authenticated; send a token: Authorization: Bearer …")
    return known


def known_principal(engine: Engine, config: Mapping[str, Any] | None) -> Principal | None:
    """Who has sent an invocation, if that is known: the gateway's caller, else the one that the settings name, else
    whoever the server has authenticated, or the server itself, on a drive of its own."""
    known = _acting.get() or engine.options.principal
    if known is not None:
        return known
    configurable = (config or {}).get("configurable") or {}
    user = configurable.get(SERVERS_WORD)
    return _own_drives.get(str(configurable.get("thread_id"))) if user is None else _authenticated(user)


def _authenticated(user: Any) -> Principal:
    try:
        return Principal(name=user["identity"], roles=tuple(user["roles"]), tenant=user["tenant"])
    except (KeyError, TypeError, ValidationError):
        raise NotPermitted("the server authenticates by something else than graph.auth:auth of Surestep") from None


def role_wanted(context: Context | None) -> str | None:
    """The role that a caller of the graph asks for; it has to be one of theirs."""
    return context.role if context is not None else None


def ports_of(session: Session) -> Ports:
    """What this run's calls share with others: kept results and failures with its tenant's only."""
    ports, tenant = session.engine.ports, session.head.tenant
    return ports if ports.tenant == tenant else replace(ports, tenant=tenant)


async def check_tenant(engine: Engine, run_id: str, principal: Principal) -> None:
    """Raise UnknownThread, as if there were none, for a run of another tenant, whoever has written its id down."""
    session = engine.sessions.get(run_id)
    if session is not None:
        tenant: str | None = session.head.tenant
    else:
        record = await engine.runs.get(run_id)
        tenant = record.tenant if record is not None else None
    if tenant is not None and tenant != principal.tenant:
        raise UnknownThread(f"there is no run {run_id}; `surestep runs` lists those there are")
