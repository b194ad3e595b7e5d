"""Fixture of the orders tools' tests: a freshly seeded shop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from checkpoints.database import open_database
from checkpoints.toolkit_schemas import apply_schemas
from tests.conftest import in_database
from tests.tools.orders.shop import Shop
from tools.orders import orders


@pytest.fixture(scope="session")
def shop_url(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with a shop, set up as the first use of the toolkit does it."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE shop TEMPLATE {template_database}".encode())
    url = in_database(postgres_url, "shop")

    async def set_up() -> list[str]:
        assert orders.schema_sql is not None
        async with open_database(url, tmp_path_factory.mktemp("shop")) as database:
            return await apply_schemas(database, {orders.name: orders.schema_sql})

    assert asyncio.run(set_up()) == ["orders"]
    return url


@pytest.fixture
async def shop(shop_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The shop as it is after its first set-up: every table is emptied and seeded again, which is a third of the time
    that a database of its own would take."""
    async with open_database(shop_url, tmp_path) as database:
        opened = Shop(database)
        await opened.reset()
        yield opened
