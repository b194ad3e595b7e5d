"""Tools that look orders and their shipments up."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.orders.arguments import Day, Limit, OrderId, at_place, check_days
from tools.orders.models import (
    Currency,
    Customer,
    Order,
    OrderLine,
    OrderList,
    OrderStatus,
    OrderSummary,
    Shipment,
    ShipmentEvent,
    Text,
)
from tools.orders.toolkit import orders, read, read_one

_FIND = """
SELECT o.*, placed_at AT TIME ZONE time_zone AS placed_local, count(*) OVER () AS matches
FROM shop.order_facts o, shop.span(NULL, NULL, %(since)s::date, %(until)s::date) AS days
WHERE (days.starts IS NULL OR placed_at >= days.starts) AND placed_at < days.ends
  AND (%(customer)s::text IS NULL OR position(lower(%(customer)s) IN lower(name || ' ' || email)) > 0)
  AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(late)s::boolean IS NULL OR late = %(late)s)
  AND (%(currency)s::text IS NULL OR currency = %(currency)s)
  AND (%(country)s::text IS NULL OR country = upper(%(country)s))
ORDER BY placed_at DESC, order_id DESC
LIMIT %(limit)s"""

_ORDER = """
SELECT *, placed_at AT TIME ZONE time_zone AS placed_local FROM shop.order_facts WHERE order_id = %(order_id)s"""

_LINES = """
SELECT sku, title, quantity, unit_price FROM shop.order_lines WHERE order_id = %(order_id)s ORDER BY line"""

_SHIPMENT = """
SELECT o.order_id, o.status AS order_status, o.promised_on, o.late, o.days_late, o.ships_from, s.status, s.carrier,
       s.tracking, s.expected_on, s.delay_cause, s.delay_detail, s.delay_detail_zh, s.shipped_at, s.delivered_at,
       s.shipped_at AT TIME ZONE o.ships_from_zone AS shipped_local,
       s.delivered_at AT TIME ZONE o.time_zone AS delivered_local
FROM shop.order_facts o LEFT JOIN shop.shipments s USING (order_id)
WHERE o.order_id = %(order_id)s"""

_EVENTS = """
SELECT at, at AT TIME ZONE time_zone AS local, place, event
FROM shop.shipment_events WHERE order_id = %(order_id)s ORDER BY at"""


@orders.tool(effect="read", timeout_s=2, output_trust="untrusted")
async def find_orders(
    ctx: ToolContext,
    *,
    customer: Annotated[str | None, Field(description="part of the customer's name or e-mail", max_length=200)] = None,
    status: OrderStatus | None = None,
    late: Annotated[bool | None, Field(description="true: overdue and not delivered")] = None,
    currency: Currency | None = None,
    country: Annotated[str | None, Field(pattern=r"^[A-Za-z]{2}$", description="two letters, e.g. DE")] = None,
    placed_since: Day | None = None,
    placed_until: Day | None = None,
    limit: Limit = 20,
) -> OrderList:
    """Find orders by customer, status, lateness, currency, country or day placed; the newest first.

    Every filter given must hold; without filters, all orders. Both days are included.
    """
    check_days(placed_since, placed_until)
    wanted = {"customer": customer, "status": status, "late": late, "currency": currency, "country": country}
    rows = await read(ctx, _FIND, {**wanted, "since": placed_since, "until": placed_until, "limit": limit})
    return OrderList(orders=tuple(_summary(row) for row in rows), matches=rows[0]["matches"] if rows else 0)


@orders.tool(effect="read", timeout_s=2, output_trust="untrusted")
async def get_order(ctx: ToolContext, order_id: OrderId) -> Order:
    """Look one order up: customer, articles, money paid and refunded, promised day, whether it is late."""
    row = await read_one(ctx, _ORDER, order_id)
    lines = await read(ctx, _LINES, {"order_id": row["order_id"]})
    return Order(
        order_id=row["order_id"],
        status=row["status"],
        customer=Customer(**{name: row[name] for name in Customer.model_fields}),
        lines=tuple(OrderLine(**line) for line in lines),
        total=row["total"],
        currency=row["currency"],
        refunded=row["refunded"],
        refundable=row["refundable"],
        placed_at=at_place(row["placed_at"], row["placed_local"]),
        promised_on=row["promised_on"],
        late=row["late"],
        days_late=row["days_late"],
        ships_from=row["ships_from"],
        note=row["note"],
    )


@orders.tool(effect="read", timeout_s=2, output_trust="trusted")
async def get_shipment(ctx: ToolContext, order_id: OrderId) -> Shipment:
    """Look an order's shipment up: where the parcel is, when it is expected, and what delays it."""
    row = await read_one(ctx, _SHIPMENT, order_id)
    if row["status"] is None:
        raise ToolFailure("NOT_FOUND", f"order {row['order_id']} is {row['order_status']} and has no shipment")
    events = await read(ctx, _EVENTS, {"order_id": row["order_id"]})
    same = (
        "order_id",
        "status",
        "carrier",
        "tracking",
        "ships_from",
        "promised_on",
        "expected_on",
        "late",
        "days_late",
    )
    return Shipment(
        **{name: row[name] for name in (*same, "delay_cause")},
        shipped_at=row["shipped_at"] and at_place(row["shipped_at"], row["shipped_local"]),
        delivered_at=row["delivered_at"] and at_place(row["delivered_at"], row["delivered_local"]),
        delay_detail=Text(en=row["delay_detail"], zh=row["delay_detail_zh"]),
        events=tuple(
            ShipmentEvent(at=at_place(event["at"], event["local"]), place=event["place"], event=event["event"])
            for event in events
        ),
    )


def _summary(row: dict[str, Any]) -> OrderSummary:
    same = ("order_id", "status", "country", "promised_on", "late", "days_late", "total", "currency")
    return OrderSummary(
        **{name: row[name] for name in same},
        customer_name=row["name"],
        placed_at=at_place(row["placed_at"], row["placed_local"]),
    )
