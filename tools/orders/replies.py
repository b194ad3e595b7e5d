"""Tools that explain, draft and send: what a customer is told."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import Field

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.orders.arguments import Address, LongText, OneLine, OrderId
from tools.orders.letters import delay_letter, return_letter
from tools.orders.lookups import get_order, get_shipment
from tools.orders.models import DelayExplanation, Draft, Language, Order, Reply, Shipment
from tools.orders.returns import return_of
from tools.orders.toolkit import orders, read, read_one
from tools.orders.wording import delay_text

_EMAIL = "SELECT order_id, email FROM shop.order_facts WHERE order_id = %(order_id)s"

_SEND = """
INSERT INTO shop.outbox (order_id, recipient, subject, body, idempotency_key, queued_at)
VALUES (%(order_id)s, %(recipient)s, %(subject)s, %(body)s, %(key)s, shop.clock())
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING reply_id, order_id, recipient, queued_at"""

_SENT = "SELECT reply_id, order_id, recipient, queued_at FROM shop.outbox WHERE idempotency_key = %(key)s"


@orders.tool(effect="read", timeout_s=4, output_trust="trusted")
async def explain_delay(ctx: ToolContext, order_id: OrderId) -> DelayExplanation:
    """Say why an order is late and when it is expected now, in English (text.en) and Chinese (text.zh).

    It says so too when the order is not late, was delivered or cancelled, or when no cause is known.
    """
    order, shipment = await _order_and_shipment(ctx, order_id)
    return DelayExplanation(
        order_id=order.order_id,
        late=order.late,
        days_late=order.days_late,
        cause=shipment.delay_cause if shipment else None,
        expected_on=shipment.expected_on if shipment and order.status != "delivered" else None,
        language=order.customer.language,
        text=delay_text(order, shipment),
    )


@orders.tool(effect="read", timeout_s=4, output_trust="untrusted")
async def draft_reply(
    ctx: ToolContext,
    order_id: OrderId,
    about: Annotated[Literal["delay", "return"], Field(description="what the customer is told about")] = "delay",
    language: Annotated[Language | None, Field(description="left out: the customer's own language")] = None,
) -> Draft:
    """Write a reply to the customer about an order's delay or return, from the facts; nothing is sent.

    The result has what send_reply needs: order_id, recipient, subject, body.
    """
    if about == "return":
        order = await get_order(ctx, order_id)
        chosen = language or order.customer.language
        subject, body = return_letter(order, await return_of(ctx, order_id), chosen)
    else:
        order, shipment = await _order_and_shipment(ctx, order_id)
        chosen = language or order.customer.language
        subject, body = delay_letter(order, shipment, chosen)
    return Draft(order_id=order.order_id, recipient=order.customer.email, language=chosen, subject=subject, body=body)


async def find_reply(key: str, ctx: ToolContext) -> Reply | None:
    """The reply that was put into the outbox with this idempotency key; None when none was."""
    rows = await read(ctx, _SENT, {"key": key})
    return _reply(rows[0]) if rows else None


@orders.tool(
    effect="irreversible",
    risk="high",
    timeout_s=15,
    output_trust="trusted",
    sensitive_args=("order_id", "recipient", "subject", "body"),
    identity_args=("order_id", "recipient"),
    probe=find_reply,
)
async def send_reply(
    ctx: ToolContext, order_id: OrderId, recipient: Address, subject: OneLine, body: LongText
) -> Reply:
    """Send a reply to the customer of an order; it cannot be taken back. The recipient is the order's own address."""
    row = await read_one(ctx, _EMAIL, order_id)
    if recipient.lower() != row["email"].lower():
        raise ToolFailure(
            "RULE_VIOLATED",
            f"{recipient} is not the address of order {row['order_id']}'s customer; replies go to {row['email']} only",
        )
    letter = {"order_id": row["order_id"], "recipient": row["email"], "subject": subject, "body": body}
    rows = await ctx.external("shop").fetch(_SEND, {**letter, "key": ctx.idempotency_key})
    if not rows:
        rows = await read(ctx, _SENT, {"key": ctx.idempotency_key})
    return _reply(rows[0])


async def _order_and_shipment(ctx: ToolContext, order_id: str) -> tuple[Order, Shipment | None]:
    """An order and its shipment; a cancelled order has none."""
    order = await get_order(ctx, order_id)
    return order, None if order.status == "cancelled" else await get_shipment(ctx, order_id)


def _reply(row: dict[str, Any]) -> Reply:
    return Reply(**{**row, "queued_at": row["queued_at"].astimezone(UTC)})
