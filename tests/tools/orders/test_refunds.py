"""Refunds: once per key, never more than is left, in the order's own money; and their status with stated age."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from plans.failure import ToolFailure
from plans.values import JSON
from tests.tools.orders.shop import TOOLS, Shop


async def refund(shop: Shop, amount: JSON, key: str = "key-1", **other: JSON) -> Any:
    """A refund of order A1234, or of another."""
    asked = {"order_id": "A1234", "currency": "EUR", "reason": "late", **other}
    return await shop.call("issue_refund", key=key, amount=amount, **asked)


async def total(shop: Shop, order_id: str = "A1234") -> Decimal:
    """What was paid for an order."""
    return Decimal((await shop.call("get_order", order_id=order_id))["total"])


async def test_a_refund_is_recorded_and_counted(shop: Shop) -> None:
    """The result names the refund, its exact amount and what is left, and the order says the same afterwards."""
    paid = await total(shop)
    made = await refund(shop, "5.5")
    assert (made["amount"], made["currency"], made["status"]) == ("5.50", "EUR", "pending")
    assert Decimal(made["refundable"]) == paid - Decimal("5.50")
    order = await shop.call("get_order", order_id="A1234")
    assert (order["refunded"], order["refundable"]) == ("5.50", made["refundable"])
    assert (
        await shop.one("SELECT idempotency_key FROM shop.refunds WHERE refund_id = %s", (made["refund_id"],)) == "key-1"
    )


async def test_ten_calls_with_one_key_refund_once(shop: Shop) -> None:
    """However often and however simultaneously the same refund is asked for, it is made once and answered the same."""
    made = await asyncio.gather(*(refund(shop, "5.50", key="same") for _ in range(10)))
    assert all(one == made[0] for one in made)
    assert await shop.one("SELECT count(*) AS n FROM shop.refunds WHERE order_id = 'A1234'") == 1


async def test_a_repeated_call_is_answered_though_nothing_is_left(shop: Shop) -> None:
    """The second call of a full refund is not refused for exceeding what its own first call left."""
    first = await refund(shop, str(await total(shop)), key="full")
    assert first["refundable"] == "0.00"
    assert await refund(shop, first["amount"], key="full") == first


async def test_two_refunds_at_once_never_exceed_the_total(shop: Shop) -> None:
    """Of two keys that together ask for more than was paid, exactly one is refunded, whoever comes first."""
    paid = await total(shop)
    share = str(round(paid * Decimal("0.6"), 2))
    for attempt in range(5):
        await shop.database.execute("DELETE FROM shop.refunds WHERE order_id = 'A1234'")
        both = await asyncio.gather(
            *(refund(shop, share, key=f"{attempt}-{n}") for n in range(2)), return_exceptions=True
        )
        refused = [one for one in both if isinstance(one, ToolFailure)]
        assert [one.code for one in refused] == ["RULE_VIOLATED"]
        assert await shop.one("SELECT sum(amount) AS s FROM shop.refunds WHERE order_id = 'A1234'") == Decimal(share)


async def test_many_small_refunds_at_once_stop_at_the_total(shop: Shop) -> None:
    """Twenty refunds of a tenth each give back everything and not a cent more."""
    await shop.database.execute("UPDATE shop.orders SET total = 100 WHERE order_id = 'A1234'")
    made = await asyncio.gather(*(refund(shop, "10", key=f"k{n}") for n in range(20)), return_exceptions=True)
    assert sum(not isinstance(one, BaseException) for one in made) == 10
    assert (await shop.call("get_order", order_id="A1234"))["refundable"] == "0.00"


async def test_a_failed_refund_may_be_made_again(shop: Shop) -> None:
    """What the gateway could not pay out is still left to refund."""
    returned = await shop.call("list_returns", refunded=False)
    one = next(found for found in returned["returns"] if found["order_id"] == "A1185")
    assert (one["refunded"], one["outstanding"]) == ("0.00", one["value"])
    made = await refund(shop, one["value"], order_id="A1185", currency=one["currency"])
    assert made["amount"] == one["value"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ({"order_id": "A9999"}, "NOT_FOUND", "order A9999 does not exist"),
        ({"currency": "USD"}, "INVALID_ARGS", "order A1234 was paid in EUR, so it is not refunded in USD"),
        ({"amount": "0.001"}, "INVALID_ARGS", "0.001 has more decimals than EUR has"),
        (
            {"amount": "99999.99"},
            "RULE_VIOLATED",
            r"EUR \S+ of order A1234 are left to refund .* 99999.99 were asked for",
        ),
    ],
)
async def test_a_refund_that_cannot_be_is_refused_in_plain_words(
    shop: Shop, args: dict[str, JSON], code: str, said: str
) -> None:
    """Each reason has its code and its sentence, and no money moves."""
    with pytest.raises(ToolFailure, match=said) as raised:
        await refund(shop, **{"amount": "1.00", **args})
    assert raised.value.code == code
    assert await shop.one("SELECT count(*) AS n FROM shop.refunds WHERE order_id = 'A1234'") == 0


@pytest.mark.parametrize("amount", ["0", "-5", 0, -0.01, "abc", "NaN", "Infinity", True, None, "1e30", "0.00001", ""])
def test_an_amount_that_is_none_is_refused_before_any_call(amount: JSON) -> None:
    """Only a finite amount above zero with few decimals is an amount, as text or as a number."""
    args = {"order_id": "A1234", "amount": amount, "currency": "EUR", "reason": "late"}
    assert {place for place, _ in TOOLS["issue_refund"].check_args(args)} == {"amount"}


async def test_the_shop_itself_refuses_amounts_below_zero(shop: Shop) -> None:
    """Who calls past the tool's own check is still told no."""
    row = await shop.database.fetch("SELECT refusal FROM shop.issue_refund('A1234', -5, 'EUR', 'late', 'key-2')")
    assert row == [{"refusal": "not_positive"}]


async def test_yen_are_refunded_whole(shop: Shop) -> None:
    """An order in yen takes no decimals, and gives none back."""
    order = (await shop.call("find_orders", currency="JPY", status="delivered", limit=1))["orders"][0]
    with pytest.raises(ToolFailure, match=r"100\.5 has more decimals than JPY has"):
        await refund(shop, "100.5", order_id=order["order_id"], currency="JPY")
    made = await refund(shop, "100.0", order_id=order["order_id"], currency="JPY")
    assert made["amount"] == "100"


async def test_a_float_is_the_decimal_it_shows(shop: Shop) -> None:
    """A model that writes 9.9 instead of "9.90" refunds nine ninety, not the binary neighbour of it."""
    assert (await refund(shop, 9.9))["amount"] == "9.90"


@pytest.mark.parametrize("other", [{"amount": "2.00"}, {"order_id": "A1190", "currency": "USD"}])
async def test_a_key_never_stands_for_another_refund(shop: Shop, other: dict[str, JSON]) -> None:
    """The same key with another amount or order is refused, and the first refund stands alone."""
    await refund(shop, "1.00", key="taken")
    with pytest.raises(ToolFailure, match="already made another refund; nothing was done") as raised:
        await refund(shop, **{"amount": "1.00", "key": "taken", **other})
    assert raised.value.code == "RULE_VIOLATED"
    assert await shop.one("SELECT count(*) AS n FROM shop.refunds WHERE idempotency_key = 'taken'") == 1


async def test_one_key_for_two_orders_at_once_makes_one_refund(shop: Shop) -> None:
    """Two orders do not lock each other, and yet of two refunds under way with one key the second is refused."""
    async with shop.database.pool.connection() as first, first.transaction():
        await first.execute("SELECT shop.issue_refund('A1190', 1, 'USD', 'late', 'shared')")
        second = asyncio.create_task(refund(shop, "1.00", key="shared"))
        while not await shop.one("SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert not second.done()
    with pytest.raises(ToolFailure, match="already made another refund; nothing was done"):
        await second
    assert await shop.one("SELECT order_id FROM shop.refunds WHERE idempotency_key = 'shared'") == "A1190"


async def test_the_gateway_knows_every_refund_now(shop: Shop) -> None:
    """The gateway's answer holds the refund of a moment ago and is as old as the question."""
    made = await refund(shop, "5.50")
    status = await shop.call("get_refund_status_gateway", order_id="A1234")
    assert (status["source"], status["age_s"], [one["refund_id"] for one in status["refunds"]]) == (
        "gateway", 0, [made["refund_id"]],
    )  # fmt: skip


async def test_the_cache_says_how_old_it_is_and_what_it_knew(shop: Shop) -> None:
    """Six hours and an hour later the cached answer says seven, and lacks what was refunded meanwhile."""
    await shop.seed_at("2026-06-10 12:00+00")
    await refund(shop, "5.50")
    await shop.stop_clock("2026-06-10 13:00+00")
    cached = await shop.call("get_refund_status_cached", order_id="A1234")
    assert (cached["source"], cached["as_of"], cached["age_s"], cached["refunds"]) == (
        "cache", "2026-06-10T06:00:00Z", 7 * 3600, [],
    )  # fmt: skip


async def test_the_cache_keeps_the_status_of_its_time(shop: Shop) -> None:
    """A refund that was settled two hours ago is settled at the gateway and pending in what it said six hours ago."""
    for tool, status in (("get_refund_status_gateway", "settled"), ("get_refund_status_cached", "pending")):
        (refund_,) = (await shop.call(tool, order_id="A1176"))["refunds"]
        assert (refund_["amount"], refund_["status"], refund_["settled_at"] is None) == (
            "376.50",
            status,
            status == "pending",
        )


@pytest.mark.parametrize(
    ("now", "en", "zh"),
    [
        ("06:25", "reported them 25 min ago", "25 分钟前"),
        ("13:05", "reported them 7 h 5 min ago", "7 小时 5 分钟前"),
        ("13:05 +3 days", "reported them 3 days ago", "3 天前"),
    ],
)
async def test_a_cached_answer_tells_its_age_in_words(shop: Shop, now: str, en: str, zh: str) -> None:
    """Whoever reads only the text learns how old it is, in both languages; the gateway's own answer claims no age."""
    await shop.seed_at("2026-06-10 12:00+00")
    day = "2026-06-13" if "days" in now else "2026-06-10"
    await shop.stop_clock(f"{day} {now[:5]}+00")
    cached = (await shop.call("get_refund_status_cached", order_id="A1164"))["text"]
    assert en in cached["en"]
    assert zh in cached["zh"]
    assert "JPY 20,920 settled." in cached["en"]
    assert "JPY 20,920 已到账。" in cached["zh"]
    assert " ago" not in (await shop.call("get_refund_status_gateway", order_id="A1164"))["text"]["en"]
    none = (await shop.call("get_refund_status_gateway", order_id="A1201"))["text"]
    assert (none["en"][-6:], none["zh"][-2:]) == (" none.", "无。")


async def test_a_gateway_that_is_down_is_a_soft_failure_with_a_way_on(shop: Shop) -> None:
    """Unavailable is soft, so the run may fall back to the cache, which takes the same arguments and answers."""
    await shop.set("refund_gateway", "down")
    with pytest.raises(ToolFailure, match="the payment gateway does not answer") as raised:
        await shop.call("get_refund_status_gateway", order_id="A1201")
    assert raised.value.code == "UNAVAILABLE"
    (fallback,) = TOOLS["get_refund_status_gateway"].spec.fallbacks
    assert (await shop.call(fallback.tool or "", order_id="A1201"))["source"] == "cache"
    await shop.set("refund_gateway", "up")
    assert (await shop.call("get_refund_status_gateway", order_id="A1201"))["source"] == "gateway"


async def test_an_order_the_cache_never_saw_is_not_found_there(shop: Shop) -> None:
    """An empty answer would claim that nothing was refunded: the cache says instead that it does not know."""
    await shop.database.execute("DELETE FROM shop.gateway_cache WHERE order_id = 'A1201'")
    with pytest.raises(ToolFailure, match="the cache holds nothing about order A1201 yet") as raised:
        await shop.call("get_refund_status_cached", order_id="A1201")
    assert raised.value.code == "NOT_FOUND"
    for tool in ("get_refund_status_cached", "get_refund_status_gateway"):
        with pytest.raises(ToolFailure, match="A9999 does not exist"):
            await shop.call(tool, order_id="A9999")


def test_a_refund_is_guarded_by_its_declaration() -> None:
    """Money leaves only as an idempotent, high-risk step whose order, amount and currency count as sensitive."""
    spec = TOOLS["issue_refund"].spec
    assert (spec.effect, spec.risk, spec.roles) == ("idempotent", "high", ())
    assert {"order_id", "amount", "currency"} <= set(spec.sensitive_args or ())
