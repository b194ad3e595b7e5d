"""Who is behind an invocation of the graph: the server's word about it, and never a client's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nodes.acting import acting, known_principal, principal_of
from nodes.beginning import folder_of_inputs
from nodes.engine import Engine, EngineOptions
from nodes.inputs import declared_inputs
from plans.errors import InvalidInput, NotPermitted
from plans.principals import Principal

ANN = Principal(name="ann", roles=("support",), tenant="acme")
SAID = {"identity": "root", "roles": ["admin"], "tenant": "best"}


def engine(principal: Principal | None, **more: Any) -> Engine:
    """An engine that works for this one; None: for whom its server has authenticated."""
    return cast("Engine", SimpleNamespace(options=replace(EngineOptions(**more), principal=principal)))


def config(user: Any = None, **more: Any) -> dict[str, Any]:
    """A configuration in which a server, or somebody who would like to be one, says who calls."""
    return {"configurable": {"langgraph_auth_user": user, **more}, "metadata": {"langgraph_auth_user": user}}


def test_where_nobody_is_authenticated_a_word_about_it_counts_for_nothing() -> None:
    """A library or a server without tokens works for whom the settings name, whatever a configuration says."""
    assert principal_of(engine(ANN), config(SAID, role="admin", tenant="best")) == ANN
    assert principal_of(engine(ANN), None) == ANN


def test_where_tokens_are_asked_for_nobody_is_served_without() -> None:
    """No user, one of another kind of authentication, and one with parts missing: refused, and never taken for one
    without roles."""
    served = engine(None)
    words: list[dict[str, Any] | None] = [None, {}, {"configurable": {}}, config(None), config(None, role="admin")]
    for said in words:
        assert known_principal(served, said) is None
        with pytest.raises(NotPermitted, match="nobody is authenticated"):
            principal_of(served, said)
    for user in ({"identity": "eve"}, {**SAID, "tenant": "../x"}, {**SAID, "roles": None}, "eve", 7):
        with pytest.raises(NotPermitted, match="by something else than"):
            principal_of(served, config(user))
    assert principal_of(served, config(SAID)) == Principal(name="root", roles=("admin",), tenant="best")


def test_what_the_gateway_drives_is_driven_for_its_caller() -> None:
    """The gateway has looked at the caller's right before; its word ends with its drive."""
    with acting(ANN):
        assert principal_of(engine(None), config(SAID)) == ANN
    assert principal_of(engine(None), config(SAID)).name == "root"


async def test_a_client_names_files_of_its_tenants_folder_only(tmp_path: Path) -> None:
    """Each tenant has a folder of its name; who comes without a tenant where tokens may name one sees no folder."""
    for name in ("acme/orders.csv", "best/orders.csv", "shared.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
    (tmp_path / "acme" / "link.csv").symlink_to(tmp_path / "best" / "orders.csv")
    served, nobody = engine(None, input_root=tmp_path), Principal(name="eve")

    async def found(who: Principal, path: str, engine: Engine = served) -> str:
        _, files = await declared_inputs({"f": {"file": path}}, *folder_of_inputs(engine, who))
        return str(Path(files["f"].path).relative_to(tmp_path))

    assert await found(ANN, "orders.csv") == "acme/orders.csv"
    assert await found(nobody, "shared.csv") == "shared.csv"
    assert await found(nobody, "acme/orders.csv", engine(nobody, input_root=tmp_path)) == "acme/orders.csv"
    for who, path in (
        (ANN, "../best/orders.csv"),
        (ANN, "../shared.csv"),
        (ANN, "link.csv"),
        (ANN, str(tmp_path / "best" / "orders.csv")),
        (nobody, "acme/orders.csv"),
        (nobody, "acme/../best/orders.csv"),
    ):
        with pytest.raises(InvalidInput, match="must lie under"):
            await found(who, path)
