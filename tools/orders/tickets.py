"""The tool that gives work to the shop's people."""

from __future__ import annotations

from datetime import UTC

from tools.context import ToolContext
from tools.orders.arguments import LongText, OneLine, OrderId
from tools.orders.models import Priority, Ticket
from tools.orders.toolkit import orders, read_one

_EXISTS = "SELECT order_id FROM shop.orders WHERE order_id = %(order_id)s"

_OPEN = """
INSERT INTO shop.tickets (order_id, subject, body, priority, opened_at, opened_by)
VALUES (%(order_id)s, %(subject)s, %(body)s, %(priority)s, shop.clock(), %(opened_by)s)
RETURNING ticket_id, order_id, priority, status, opened_at"""


@orders.tool(
    effect="transactional",
    timeout_s=2,
    output_trust="trusted",
    sensitive_args=("priority",),
    identity_args=("order_id", "subject"),
)
async def open_ticket(
    ctx: ToolContext,
    subject: OneLine,
    body: LongText,
    order_id: OrderId | None = None,
    priority: Priority = "normal",
) -> Ticket:
    """Open a ticket for the shop's people, about one order or about none; nothing goes to the customer."""
    # Asked before the transaction begins: while it holds its connection it waits for no other.
    known = (await read_one(ctx, _EXISTS, order_id))["order_id"] if order_id is not None else None
    written = {"order_id": known, "subject": subject, "body": body, "priority": priority, "opened_by": ctx.run_id}
    (row,) = await ctx.connection.fetch(_OPEN, written)
    return Ticket(**{**row, "opened_at": row["opened_at"].astimezone(UTC)})
