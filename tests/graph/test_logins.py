"""Logins for the audit: each token once, refusals counted, and nobody comes in unrecorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langgraph_sdk import Auth

from checkpoints.audit import Audit
from checkpoints.database import Database
from graph.auth import auth_for
from graph.logins import Logins
from graph.settings import Settings
from graph.tokens import made_token, verifier_from
from plans.errors import DatabaseUnavailable
from plans.principals import Principal

ANN = Principal(name="ann", roles=("support",), tenant="north")


class Now:
    """A clock that stands still until it is told."""

    at = 100.0

    def __call__(self) -> float:
        return self.at


async def test_a_token_is_noted_once_and_refusals_are_counted(database: Database) -> None:
    """A thousand bad tokens in ten seconds are one row, and the next row says how many there were."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[Database]:
        yield database

    now = Now()
    logins = Logins(opening, monotonic=now)
    await asyncio.gather(*(logins.accepted(token, ANN) for token in ("Bearer a", "Bearer b") * 5))
    await logins.accepted("Bearer a", ANN)
    for _ in range(1_000):
        await logins.refused("the token has expired")
    now.at += 11
    await logins.refused("the token has expired")
    found = [(entry.kind, entry.subject, entry.details or {}) for entry in await Audit(database).entries(["logins"])]
    assert [(kind, subject) for kind, subject, _ in found] == [
        ("login.accepted", "ann"), ("login.accepted", "ann"), ("login.refused", ""), ("login.refused", ""),
    ]  # fmt: skip
    assert (found[0][2]["tenant"], found[0][2]["roles"]) == ("north", ["support"])
    assert [details["times"] for _, _, details in found[2:]] == [1, 1_000]


async def test_nobody_is_let_in_whose_login_cannot_be_recorded() -> None:
    """The database is gone: a good token gets 503, and so does a bad one; neither gets in."""

    def opening() -> Any:
        raise DatabaseUnavailable("gone")

    settings = Settings.load(environment={}, auth_key="0123456789abcdef0123456789abcdef", auth_audience="surestep")
    auth = auth_for(verifier_from(settings), "tenant", (), Logins(opening))
    authenticate: Any = auth._authenticate_handler
    for authorization in (f"Bearer {made_token(settings, ANN, 600, time.time())}", "Bearer x"):
        with pytest.raises(Auth.exceptions.HTTPException) as refused:
            await authenticate(authorization)
        assert refused.value.status_code == 503
