"""Tickets: written in the run's own transaction, so that they exist exactly when the step's result does."""

from __future__ import annotations

import pytest

from checkpoints.connections import GuardedTransaction
from plans.failure import ToolFailure
from plans.values import JSON
from tests.tools.orders.shop import TOOLS, Shop

TICKET: dict[str, JSON] = {
    "order_id": "a1223",
    "subject": "House number missing",
    "body": "请补充门牌号。",
    "priority": "high",
}


async def tickets(shop: Shop) -> list[dict[str, object]]:
    """What the shop's people see."""
    return await shop.database.fetch("SELECT order_id, subject, body, priority, status, opened_by FROM shop.tickets")


async def test_a_ticket_commits_with_the_record_of_its_step(shop: Shop) -> None:
    """Before the last statement nobody sees the ticket; with it, ticket and record are there together."""
    async with GuardedTransaction(shop.database.pool) as transaction:
        ticket = await shop.call("open_ticket", ctx=shop.context(connection=transaction), **TICKET)
        assert await tickets(shop) == []
        await transaction.commit_with("INSERT INTO shop.settings VALUES ('outcome', 'done') RETURNING name")
    assert (ticket["order_id"], ticket["status"], ticket["ticket_id"][0]) == ("A1223", "open", "T")
    (row,) = await tickets(shop)
    assert row == {**TICKET, "order_id": "A1223", "status": "open", "opened_by": "run-1"}
    assert await shop.one("SELECT value FROM shop.settings WHERE name = 'outcome'") == "done"


async def test_a_ticket_is_rolled_back_with_its_step(shop: Shop) -> None:
    """A step that is aborted, or whose fence has moved on, leaves no ticket behind."""
    async with GuardedTransaction(shop.database.pool) as aborted:
        await shop.call("open_ticket", ctx=shop.context(connection=aborted), **TICKET)
    async with GuardedTransaction(shop.database.pool) as stale:
        await shop.call("open_ticket", ctx=shop.context(connection=stale), **TICKET)
        assert await stale.commit_with("SELECT 1 AS fence WHERE false") == []
    assert await tickets(shop) == []


async def test_a_ticket_never_writes_past_its_transaction(shop: Shop) -> None:
    """On the connection of a read the ticket is refused: it has no other way to be written."""
    with pytest.raises(ToolFailure) as raised:
        await shop.call("open_ticket", **TICKET)
    assert raised.value.code == "NOT_PERMITTED"
    assert await tickets(shop) == []


async def test_a_ticket_may_be_about_no_order_but_not_about_a_wrong_one(shop: Shop) -> None:
    """Without an order it stands alone; an order that does not exist is told, and the transaction was never begun."""
    async with GuardedTransaction(shop.database.pool) as transaction:
        ctx = shop.context(connection=transaction)
        with pytest.raises(ToolFailure, match="order A9999 does not exist"):
            await shop.call("open_ticket", ctx=ctx, **{**TICKET, "order_id": "A9999"})
        ticket = await shop.call("open_ticket", ctx=ctx, subject="Call the carrier", body="Today.")
    assert (ticket["order_id"], ticket["priority"]) == (None, "normal")


def test_a_ticket_is_guarded_by_its_declaration() -> None:
    """A ticket is transactional, and what it says is checked before any call."""
    spec = TOOLS["open_ticket"].spec
    assert (spec.effect, spec.risk) == ("transactional", "low")
    wrong: dict[str, JSON] = {"subject": "two\nlines", "body": " ", "priority": "now", "order_id": "none"}
    assert {place for place, _ in TOOLS["open_ticket"].check_args(wrong)} == set(wrong)
