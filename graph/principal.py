"""Who acts on this machine: the principal that the settings name, for library, command line and workers."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from graph.tokens import asks_for_tokens
from plans.errors import NotPermitted
from plans.principals import Principal
from plans.values import printable

if TYPE_CHECKING:
    from graph.settings import Settings

NOBODY = Principal(name="nobody")
"""For whom the gateway of a process acts that serves authenticated callers only: `acting_as` says more."""
ANONYMOUS = "anonymous"
"""Who calls a server that authenticates nobody."""


def os_user() -> str | None:
    """The name of the operating system's user; None where it has none, or none that can be shown."""
    try:
        name = getpass.getuser().strip()
    except (KeyError, OSError):
        return None
    return name[:200] if name.isprintable() and name else None


def principal_from(settings: Settings) -> Principal:
    """Who the settings say is at work here; without a word the operating system's user, of no role and no tenant."""
    return Principal(name=settings.user or os_user() or "library", roles=settings.roles, tenant=settings.tenant)


def principal_served(settings: Settings) -> Principal | None:
    """For whom a server runs the graph: None, each caller for itself, where tokens are verified. Else an anonymous one
    of the settings' tenant, and without the roles that the settings give to who works on the machine. Raises
    ConfigurationError where half of what verifies them is set."""
    return None if asks_for_tokens(settings) else Principal(name=ANONYMOUS, tenant=settings.tenant)


def named(principal: Principal, by: Principal | str | None) -> Principal:
    """Who decides: the caller itself, the same under another name, or somebody whom the caller has authenticated.
    Raises NotPermitted for one of another tenant."""
    if by is None:
        return principal
    if isinstance(by, str):
        return principal.model_copy(update={"name": by})
    if by.tenant != principal.tenant:
        raise NotPermitted(f"{printable(by.name)} is of another tenant than this agent; use agent.acting_as(…)")
    return by
