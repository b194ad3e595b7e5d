"""The shop's script: safe to run again, and the seeded orders keep the promises that goals and tools rest on."""

from __future__ import annotations

from decimal import Decimal
from importlib.resources import files

import psycopg
import pytest

from checkpoints.database import Database
from tests.tools.orders.shop import Shop

SCRIPT = files("tools.orders").joinpath("shop.sql").read_text("utf-8")


async def run_again(shop: Shop) -> None:
    """The script once more, as a newer version would run it."""
    async with shop.database.pool.connection() as connection, connection.transaction():
        await connection.execute(SCRIPT.encode())


async def test_the_script_runs_again_without_touching_what_is_there(shop: Shop) -> None:
    """A second run, as after an update, keeps settings, orders and what was done since."""
    await shop.set("refund_gateway", "down")
    await shop.call("issue_refund", order_id="A1234", amount="1.00", currency="EUR", reason="late")
    before = await shop.world()
    await run_again(shop)
    assert await shop.world() == before


async def test_a_schema_of_somebody_else_is_left_alone(database: Database) -> None:
    """A database whose "shop" is not ours is refused in plain words, and nothing in it changes."""
    await database.execute("CREATE SCHEMA shop")
    await database.execute("CREATE TABLE shop.orders (order_id text PRIMARY KEY)")
    with pytest.raises(psycopg.errors.RaiseException, match='a schema "shop" that is not the orders toolkit\'s'):
        await run_again(Shop(database))
    tables = await database.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'r'"
    )
    assert tables == [{"relname": "orders"}]
    assert await database.fetch("SELECT * FROM shop.orders") == []


async def test_seeding_again_gives_the_same_shop_with_fresh_dates(shop: Shop) -> None:
    """The same clock gives the same rows; a later one moves the dates along and keeps amounts and stories."""
    await shop.seed_at("2026-06-10 12:00+02")
    first = await shop.world()
    refunds = ("refunds", "gateway_cache")  # numbered on and on
    await shop.seed_at("2026-06-10 12:00+02")
    again = await shop.world()
    assert {name: rows for name, rows in again.items() if name not in refunds} == {
        name: rows for name, rows in first.items() if name not in refunds
    }
    total = await shop.one("SELECT total FROM shop.orders WHERE order_id = 'A1234'")
    await shop.seed_at("2027-01-01 12:00+01")
    assert await shop.one("SELECT total FROM shop.orders WHERE order_id = 'A1234'") == total
    assert (await shop.call("explain_delay", order_id="A1234"))["days_late"] == 2


async def test_the_shop_is_as_large_and_mixed_as_stated(shop: Shop) -> None:
    """Sixty customers in many zones and both languages, 150 orders in four currencies, every status."""
    assert await shop.one("SELECT count(*) AS n FROM shop.customers") == 60
    assert await shop.one("SELECT count(*) AS n FROM shop.orders") == 150
    assert await shop.one("SELECT count(DISTINCT time_zone) AS n FROM shop.customers") > 20
    assert await shop.one("SELECT count(DISTINCT time_zone) AS n FROM shop.warehouses") == 4
    assert await shop.one("SELECT count(DISTINCT currency) AS n FROM shop.orders") == 4
    assert await shop.one("SELECT count(DISTINCT status) AS n FROM shop.orders") == 5
    assert await shop.one("SELECT count(*) AS n FROM shop.customers WHERE language = 'zh'") >= 15


async def test_totals_are_the_sum_of_their_lines(shop: Shop) -> None:
    """What an order costs is what its lines say, and nothing was refunded beyond it."""
    wrong = await shop.database.fetch(
        "SELECT order_id FROM shop.order_facts o WHERE refunded > total OR total <> "
        "(SELECT sum(quantity * unit_price) FROM shop.order_lines l WHERE l.order_id = o.order_id)"
    )
    assert wrong == []


@pytest.mark.parametrize("hour", [0, 5, 11, 17, 23])
async def test_nothing_seeded_lies_in_the_future_or_out_of_order(shop: Shop, hour: int) -> None:
    """Set up at any hour: ordered, shipped, delivered, returned, refunded, settled, and all before now."""
    await shop.seed_at(f"2026-03-29 {hour:02}:30+00")
    wrong = await shop.database.fetch(
        """
        SELECT o.order_id FROM shop.orders o
        LEFT JOIN shop.shipments s USING (order_id) LEFT JOIN shop.returns r USING (order_id)
        LEFT JOIN shop.refunds f USING (order_id)
        WHERE NOT coalesce(placed_at < shipped_at, true) OR NOT coalesce(shipped_at < delivered_at, true)
           OR NOT coalesce(delivered_at < received_at, true) OR NOT coalesce(received_at < requested_at, true)
           OR NOT coalesce(requested_at < settled_at, true)
           OR greatest(placed_at, shipped_at, delivered_at, received_at, requested_at, settled_at) > shop.clock()
           OR EXISTS (SELECT FROM shop.shipment_events e WHERE e.order_id = o.order_id AND e.at > shop.clock())
           OR (o.status = 'delivered') <> (s.delivered_at IS NOT NULL)
        """
    )
    assert wrong == []


async def test_yen_and_cents_cannot_be_mixed_up_in_the_tables(shop: Shop) -> None:
    """The tables themselves refuse a total with more decimals than its currency has."""
    for currency, total in (("JPY", Decimal("10.5")), ("EUR", Decimal("10.505"))):
        with pytest.raises(psycopg.errors.CheckViolation, match="orders_check"):
            await shop.database.execute(
                "UPDATE shop.orders SET currency = %s, total = %s WHERE order_id = 'A1234'", (currency, total)
            )
