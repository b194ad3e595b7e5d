"""Fixtures of the recovery tests: a scripted model, and a place for trials: a database, a ledger, a forking process."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from pytest_httpserver import HTTPServer

from tests.conftest import in_database
from tests.nodes.model_server import ScriptedModel
from tests.recovery.forks import Forks
from tests.recovery.kit import BOOKINGS
from tests.recovery.ledger import Ledger
from tests.recovery.trial import Trials


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> ScriptedModel:
    """A model endpoint that answers as the test says."""
    return ScriptedModel(httpserver)


@pytest.fixture(scope="session")
def trials(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """A place for trials, with a run that nobody stopped as what is expected of the others."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE trials TEMPLATE {template_database} STRATEGY FILE_COPY")
    url = in_database(postgres_url, "trials")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(BOOKINGS)
    with Ledger() as ledger, Forks() as forks:
        yield Trials(url, tmp_path_factory.mktemp("trials"), forks, ledger)
