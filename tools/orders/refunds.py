"""Tools about refunds: their status at the gateway or from the cache, and making one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any, Literal

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.orders.arguments import LongText, OrderId, PositiveAmount
from tools.orders.models import Currency, Refund, RefundEntry, RefundStatus
from tools.orders.toolkit import no_order, orders, read, read_one
from tools.orders.wording import refunds_text

_GATEWAY = """
SELECT o.order_id, shop.clock() AS as_of,
       (SELECT value FROM shop.settings WHERE name = 'refund_gateway') AS gateway
FROM shop.orders o WHERE order_id = %(order_id)s"""

_AT_GATEWAY = """
SELECT refund_id, amount, currency, r.status, requested_at, settled_at
FROM shop.refunds r JOIN shop.orders USING (order_id) WHERE order_id = %(order_id)s ORDER BY requested_at, refund_id"""

_CACHED = """
SELECT o.order_id, seen_at AS as_of, refunds,
       greatest(0, floor(extract(epoch FROM shop.clock() - seen_at)))::integer AS age_s
FROM shop.orders o LEFT JOIN shop.gateway_cache USING (order_id) WHERE order_id = %(order_id)s"""

_ISSUE = """
SELECT * FROM shop.issue_refund(%(order_id)s, %(amount)s::numeric, %(currency)s, %(reason)s, %(key)s)"""


@orders.tool(
    effect="read",
    timeout_s=15,
    output_trust="trusted",
    fallbacks=("get_refund_status_cached",),
)
async def get_refund_status_gateway(ctx: ToolContext, order_id: OrderId) -> RefundStatus:
    """Ask the payment gateway for the refunds of an order as they stand now; it may be unavailable for a while."""
    row = await read_one(ctx, _GATEWAY, order_id)
    if row["gateway"] != "up":
        raise ToolFailure("UNAVAILABLE", "the payment gateway does not answer")
    refunds = await read(ctx, _AT_GATEWAY, {"order_id": row["order_id"]})
    return _status(row, "gateway", 0, refunds)


@orders.tool(effect="read", timeout_s=2, output_trust="trusted")
async def get_refund_status_cached(ctx: ToolContext, order_id: OrderId) -> RefundStatus:
    """The refunds of an order as the gateway last reported them; `as_of` and `age_s` say how long ago that was."""
    row = await read_one(ctx, _CACHED, order_id)
    if row["as_of"] is None:
        raise ToolFailure("NOT_FOUND", f"the cache holds nothing about order {row['order_id']} yet")
    return _status(row, "cache", row["age_s"], row["refunds"])


@orders.tool(
    effect="idempotent",
    risk="high",
    timeout_s=30,
    output_trust="trusted",
    sensitive_args=("order_id", "amount", "currency"),
    identity_args=("order_id", "amount", "currency"),
)
async def issue_refund(
    ctx: ToolContext, order_id: OrderId, amount: PositiveAmount, currency: Currency, reason: LongText
) -> Refund:
    """Refund part or all of an order to the customer: at most what is left of its total, in the order's currency."""
    asked = {"order_id": order_id.upper(), "amount": amount, "currency": currency, "reason": reason}
    (row,) = await ctx.external("shop").fetch(_ISSUE, {**asked, "key": ctx.idempotency_key})
    if row["refusal"]:
        raise _refused(row, order_id.upper(), amount, currency)
    return Refund(
        refund_id=row["refund_id"],
        order_id=order_id.upper(),
        amount=row["amount"],
        currency=row["currency"],
        status=row["status"],
        requested_at=row["requested_at"].astimezone(UTC),
        refundable=row["total"] - row["refunded"],
    )


def _status(
    row: dict[str, Any], source: Literal["gateway", "cache"], age_s: int, refunds: Sequence[Mapping[str, Any]]
) -> RefundStatus:
    as_of = row["as_of"].astimezone(UTC)
    entries = tuple(RefundEntry.model_validate(refund) for refund in refunds)
    return RefundStatus(
        order_id=row["order_id"],
        source=source,
        as_of=as_of,
        age_s=age_s,
        refunds=entries,
        text=refunds_text(row["order_id"], entries, as_of, age_s if source == "cache" else None),
    )


def _refused(row: dict[str, Any], order_id: str, amount: Decimal, currency: Currency) -> ToolFailure:
    match row["refusal"]:
        case "no_order":
            return no_order(order_id)
        case "other_currency":
            paid = row["currency"]
            return ToolFailure(
                "INVALID_ARGS", f"order {order_id} was paid in {paid}, so it is not refunded in {currency}"
            )
        case "not_positive":
            return ToolFailure("INVALID_ARGS", f"the amount of a refund is more than 0, not {amount}")
        case "too_fine":
            return ToolFailure("INVALID_ARGS", f"{amount} has more decimals than {currency} has")
        case "too_much":
            left = row["total"] - row["refunded"]
            return ToolFailure(
                "RULE_VIOLATED",
                f"{currency} {left} of order {order_id} are left to refund (total {row['total']}, already refunded "
                f"{row['refunded']}), and {amount} were asked for",
            )
    return ToolFailure("RULE_VIOLATED", "this idempotency key has already made another refund; nothing was done")
