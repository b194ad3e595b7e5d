"""The toolkit itself, and how its tools reach the shop."""

from __future__ import annotations

from typing import Any

from plans.failure import ToolFailure
from tools.context import Parameters, ToolContext
from tools.registry import Toolkit

orders = Toolkit(
    "orders",
    description="A shop's orders, shipments, returns and refunds; tickets and replies to customers.",
    schema_sql="tools.orders:shop.sql",
)


async def read(ctx: ToolContext, sql: str, params: Parameters = ()) -> list[dict[str, Any]]:
    """Rows of the shop, wherever its database is: what is read and what is changed must be the same shop.

    A connection lost while reading has changed nothing, so that is UNAVAILABLE and never an unknown outcome.
    """
    try:
        return await ctx.external("shop").fetch(sql, params)
    except ToolFailure as failure:
        if failure.code != "UNKNOWN_OUTCOME":
            raise
        raise ToolFailure("UNAVAILABLE", "the shop's database went away while it was being read") from failure


async def read_one(ctx: ToolContext, sql: str, order_id: str) -> dict[str, Any]:
    """The one row about an order. ToolFailure NOT_FOUND when there is none."""
    rows = await read(ctx, sql, {"order_id": order_id.upper()})
    if not rows:
        raise no_order(order_id)
    return rows[0]


def no_order(order_id: str) -> ToolFailure:
    """What to say of an order that is not there."""
    return ToolFailure("NOT_FOUND", f"order {order_id.upper()} does not exist; order numbers look like A1234")
