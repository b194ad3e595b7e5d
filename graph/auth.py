"""Who may what at a LangGraph server (`auth.path` in langgraph.json): callers by signed tokens, and theirs alone.

Where no key is set nobody is asked, as on a machine of one's own. Where one is set, whatever is not allowed here is
refused, so that a door which a later server adds is shut until somebody has looked at it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langgraph_sdk import Auth

from graph.logins import Logins, logins_of
from graph.principal import ANONYMOUS
from graph.settings import Settings
from graph.tokens import Verifier, verifier_from
from plans.errors import NotAuthenticated, SurestepError

if TYPE_CHECKING:
    from langgraph_sdk.auth.types import AuthContext

TENANT, OWNER = "surestep_tenant", "surestep_owner"
"""Under these names a thread's metadata says whose it is. No client writes them."""
Visible = Literal["tenant", "owner"]
Ruling = Any
"""The server's types name each action's own value; here one function is for several."""


def auth_for(
    verifier: Verifier | None, visible_to: Visible, start_roles: Sequence[str], logins: Logins | None = None
) -> Auth:
    """What the server asks about each request; `logins` notes who comes in."""
    auth = Auth()
    auth.authenticate(_authenticating(verifier, logins))
    if verifier is not None:
        auth.on(_refuse)
        auth.on.threads(_on_threads(visible_to))
        auth.on.threads.create(_on_new_thread(visible_to))
        auth.on.threads.create_run(_on_new_run(visible_to, frozenset(start_roles)))
        auth.on.assistants.read(_allow)
        auth.on.assistants.search(_allow)
        auth.on.store(_on_store(visible_to))
    return auth


def _authenticating(verifier: Verifier | None, logins: Logins | None) -> Ruling:
    async def authenticate(authorization: str | None) -> dict[str, Any]:
        if verifier is None:
            return {"identity": ANONYMOUS, "permissions": [], "roles": [], "tenant": ""}
        try:
            principal = verifier.principal(authorization)
        except NotAuthenticated as refused:
            await _noted(logins.refused(str(refused)) if logins else None)
            raise Auth.exceptions.HTTPException(status_code=401, detail=str(refused)) from None
        await _noted(logins.accepted(authorization, principal) if logins else None)
        return {
            "identity": principal.name,
            "permissions": list(principal.roles),
            "roles": list(principal.roles),
            "tenant": principal.tenant,
        }

    return authenticate


async def _noted(noting: Coroutine[Any, Any, None] | None) -> None:
    """Nobody comes in, and nobody is turned away, without a record of it."""
    if noting is None:
        return
    try:
        await noting
    except SurestepError:
        told = "logins cannot be recorded, so nobody is let in; the database does not answer"
        raise Auth.exceptions.HTTPException(status_code=503, detail=told) from None


async def _refuse(ctx: AuthContext, value: Any) -> bool:  # noqa: ARG001 (the server calls it so)
    """What no rule here allows."""
    return False


async def _allow(ctx: AuthContext, value: Any) -> bool:  # noqa: ARG001 (the server calls it so)
    return True


def _on_threads(visible_to: Visible) -> Ruling:
    """Reading, searching, changing and deleting: what is the caller's own, and it stays theirs."""

    async def on_threads(ctx: AuthContext, value: Any) -> dict[str, str]:
        for metadata in _metadata_in(value):
            _leave_ownership(metadata)
        return whose(ctx.user, visible_to)

    return on_threads


def _on_new_thread(visible_to: Visible) -> Ruling:
    async def on_new_thread(ctx: AuthContext, value: Any) -> dict[str, str]:
        _own(ctx.user, value)
        return whose(ctx.user, visible_to)

    return on_new_thread


def _on_new_run(visible_to: Visible, start_roles: frozenset[str]) -> Ruling:
    """A run on one's own thread, or on a new one that becomes one's own. A word to an open run is one too."""

    async def on_new_run(ctx: AuthContext, value: Any) -> dict[str, str]:
        if start_roles and start_roles.isdisjoint(ctx.user["roles"]) and not _answers(value):
            raise Auth.exceptions.HTTPException(status_code=403, detail="runs are started by other roles than yours")
        for metadata in _metadata_in(value):
            _leave_ownership(metadata)
        _own(ctx.user, value)
        return whose(ctx.user, visible_to)

    return on_new_run


def _on_store(visible_to: Visible) -> Ruling:
    """The namespaces of a tenant begin with its name, those of an owner go on with theirs."""

    async def on_store(ctx: AuthContext, value: Any) -> bool:
        mine = namespace_of(ctx.user, visible_to)
        asked = tuple(value.get("namespace") or value.get("namespace_prefix") or ())
        if asked[: len(mine)] != mine:
            raise Auth.exceptions.HTTPException(
                status_code=403, detail=f"your namespaces in the store begin with {list(mine)}"
            )
        return True

    return on_store


def whose(user: Any, visible_to: Visible) -> dict[str, str]:
    """What the metadata of a thread has to say for this caller to see it."""
    tenant = {TENANT: str(user["tenant"])}
    return {**tenant, OWNER: str(user["identity"])} if visible_to == "owner" else tenant


def namespace_of(user: Any, visible_to: Visible) -> tuple[str, ...]:
    """The beginning of this caller's namespaces. Labels hold no dots, names may."""
    labels = [str(user["tenant"]) or "-", *([str(user["identity"])] if visible_to == "owner" else [])]
    return tuple(label.replace("%", "%25").replace(".", "%2E") for label in labels)


def _own(user: Any, value: MutableMapping[str, Any]) -> None:
    value.setdefault("metadata", {})
    value["metadata"] |= {TENANT: str(user["tenant"]), OWNER: str(user["identity"])}


def _leave_ownership(metadata: MutableMapping[str, Any]) -> None:
    for name in (TENANT, OWNER):
        metadata.pop(name, None)


def _metadata_in(value: Any) -> list[MutableMapping[str, Any]]:
    """Everywhere that a request can bring metadata of a thread or run."""
    kwargs = value.get("kwargs") if isinstance(value, Mapping) else None
    config = kwargs.get("config") if isinstance(kwargs, Mapping) else None
    places = [value, kwargs, config]
    found = [place.get("metadata") for place in places if isinstance(place, Mapping)]
    return [metadata for metadata in found if isinstance(metadata, MutableMapping)]


def _answers(value: Any) -> bool:
    """Whether a run only goes on with what was interrupted: whoever may decide need not be one who may start."""
    kwargs = value.get("kwargs") or {}
    told = {name for name, given in (kwargs.get("command") or {}).items() if given is not None}
    return told == {"resume"} and kwargs.get("input") is None


def _of_settings() -> Auth:
    settings = Settings.load()
    return auth_for(verifier_from(settings), settings.auth_visible_to, settings.start_roles, logins_of(settings))


auth = _of_settings()
"""For `langgraph.json`. Made when it is imported: a server whose settings are wrong here does not start."""
