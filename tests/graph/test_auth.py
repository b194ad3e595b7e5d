"""The rulings of a server on requests: ownership is written by it alone, and what no rule allows is shut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import Auth

from graph.auth import OWNER, TENANT, Visible, auth_for, namespace_of, whose
from graph.principal import principal_from, principal_served
from graph.settings import Settings
from graph.tokens import Verifier

ANN = {"identity": "ann", "roles": ["support"], "tenant": "acme"}
FORGED = {TENANT: "best", OWNER: "root", "mine": 1}


async def ruled(resource: str, action: str, value: Any, *, visible_to: Visible = "tenant", starts: Any = ()) -> Any:
    """What the most specific rule says of a request of Ann's."""
    auth = auth_for(Verifier("k" * 32, "HS256", "surestep"), visible_to, starts)
    rules = auth._handlers
    found = rules.get((resource, action)) or rules.get((resource, "*")) or auth._global_handlers
    return await found[-1](ctx=SimpleNamespace(user=ANN), value=value)


async def test_whose_a_thread_is_is_written_by_the_server_alone() -> None:
    """A new thread is its maker's whatever its metadata says; a change and a search leave ownership as it is."""
    for action in ("create", "create_run"):
        value = {"metadata": dict(FORGED), "kwargs": {"config": {"metadata": dict(FORGED)}, "input": {"goal": "x"}}}
        assert await ruled("threads", action, value) == {TENANT: "acme"}
        assert value["metadata"] == {TENANT: "acme", OWNER: "ann", "mine": 1}
    for action in ("update", "search", "read", "delete"):
        value = {"metadata": dict(FORGED)}
        assert await ruled("threads", action, value, visible_to="owner") == {TENANT: "acme", OWNER: "ann"}
        assert value["metadata"] == {"mine": 1}


async def test_who_may_not_start_may_answer_and_nothing_else() -> None:
    """With `start_roles` a run without one of them is an answer to what was asked: no goal, no update, no way past."""
    starting: list[dict[str, Any]] = [
        {"input": {"goal": "x"}},
        {"input": None},
        {"command": {"resume": {}}, "input": {"goal": "x"}},
        {"command": {"resume": {}, "update": {"goal": "x"}}},
        {"command": {"goto": "plan"}},
        {},
    ]
    for kwargs in starting:
        with pytest.raises(Auth.exceptions.HTTPException):
            await ruled("threads", "create_run", {"kwargs": kwargs}, starts=("sales",))
    answer = {"kwargs": {"command": {"resume": {"a": 1}, "update": None}, "input": None}}
    assert await ruled("threads", "create_run", answer, starts=("sales",)) == {TENANT: "acme"}


@pytest.mark.parametrize(
    ("resource", "action"),
    [("assistants", "create"), ("assistants", "update"), ("assistants", "delete"), ("crons", "create"),
     ("crons", "search"), ("a later resource", "read")],
)  # fmt: skip
async def test_what_no_rule_allows_is_shut(resource: str, action: str) -> None:
    """Also what a later server may add."""
    assert await ruled(resource, action, {}) is False


async def test_items_of_the_store_lie_below_their_tenant() -> None:
    """A namespace begins with the tenant, and with its owner where threads are their owner's; names with dots too."""
    for namespace in ([], ["best"], ["acme2"], None):
        with pytest.raises(Auth.exceptions.HTTPException):
            await ruled("store", "put", {"namespace": namespace})
    assert await ruled("store", "put", {"namespace": ("acme", "notes")}) is True
    with pytest.raises(Auth.exceptions.HTTPException):
        await ruled("store", "search", {"namespace": ("acme", "bob")}, visible_to="owner")
    assert await ruled("store", "search", {"namespace": ("acme", "ann")}, visible_to="owner") is True
    dotted = {"identity": "ann@a.example", "tenant": ""}
    assert namespace_of(dotted, "owner") == ("-", "ann@a%2Eexample")
    assert whose(dotted, "owner") == {TENANT: "", OWNER: "ann@a.example"}


async def test_a_server_without_tokens_gives_nobody_the_roles_of_its_machine() -> None:
    """Whoever can reach its port is anonymous: of the settings' tenant, and without the roles that they name."""
    settings = Settings.load(environment={}, user="ann", roles=("admin",), tenant="acme")
    served = principal_served(settings)
    assert served is not None
    assert (served.name, served.roles, served.tenant) == ("anonymous", (), "acme")
    assert principal_from(settings).roles == ("admin",)
    open_to_all = auth_for(None, "tenant", ())
    assert open_to_all._authenticate_handler is not None
    user: Any = await open_to_all._authenticate_handler(authorization="Bearer x")
    assert (user["roles"], user["permissions"]) == ([], [])
    with_tokens = Settings.load(environment={}, roles=("admin",), auth_key="k" * 32, auth_audience="surestep")
    assert principal_served(with_tokens) is None
