"""The shop under test: the real script on a real database, its tools as a run calls them, and its clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpoints.connections import LazyConnection
from checkpoints.database import Database
from plans.values import JSON
from tools.context import Connection, ToolContext
from tools.files import FileScope
from tools.orders import orders
from tools.registry import Registry

TOOLS = Registry.of(orders)

TABLES = (
    "settings", "customers", "warehouses", "products", "orders", "order_lines", "shipments", "shipment_events",
    "returns", "refunds", "gateway_cache", "tickets", "outbox",
)  # fmt: skip


@dataclass(frozen=True)
class Shop:
    """One seeded shop."""

    database: Database

    async def call(self, tool: str, /, *, key: str = "key-1", ctx: ToolContext | None = None, **args: JSON) -> Any:
        """What a tool gives for JSON arguments, as JSON."""
        return await TOOLS[tool].invoke(args, ctx or self.context(key))

    def context(self, key: str = "key-1", connection: Connection | None = None) -> ToolContext:
        """What a run hands to a tool; `connection` stands in for the read-only one."""
        return ToolContext(
            run_id="run-1",
            step_id="s1",
            attempt=1,
            idempotency_key=key,
            deadline=time.monotonic() + 60,
            files=FileScope({}, Path("/dev/null/nowhere")),
            connection=connection or LazyConnection(self.database.pool, "read_only"),
            external=lambda _name: LazyConnection(self.database.pool, "autocommit"),
            progress=lambda _fraction, _message: None,
        )

    async def reset(self) -> None:
        """As it was set up: the settings, every row, and the clock that runs."""
        await self.database.execute("DELETE FROM shop.settings")
        for name, value in (("time_zone", "Europe/Amsterdam"), ("refund_gateway", "up")):
            await self.set(name, value)
        await self.database.execute("SELECT shop.seed()")

    async def stop_clock(self, at: str) -> None:
        """From now on it is always `at` (text with an offset); what is there stays as it is."""
        await self.set("clock", at)

    async def seed_at(self, at: str) -> None:
        """As if the shop had been set up at `at`."""
        await self.stop_clock(at)
        await self.database.execute("SELECT shop.seed()")

    async def set(self, name: str, value: str) -> None:
        """Change a setting of the shop."""
        await self.database.execute(
            "INSERT INTO shop.settings VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    async def one(self, sql: str, params: Sequence[Any] = ()) -> Any:
        """The first value of the first row."""
        return next(iter((await self.database.fetch(sql, params))[0].values()))

    async def world(self) -> dict[str, list[str]]:
        """Every row of every table, as text."""
        texts = {name: f"SELECT t::text AS row FROM shop.{name} t ORDER BY 1" for name in TABLES}  # noqa: S608 (our names)
        return {name: [row["row"] for row in await self.database.fetch(sql)] for name, sql in texts.items()}
