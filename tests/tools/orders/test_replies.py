"""Explaining, drafting and sending: the customer's language and address, once per key, and a probe that knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plans.failure import ToolFailure
from plans.values import JSON
from tests.tools.orders.shop import TOOLS, Shop

LETTER: dict[str, JSON] = {
    "order_id": "A1234", "recipient": "hannah.becker@example.com", "subject": "Your order", "body": "It is late.",
}  # fmt: skip


async def sent(shop: Shop) -> int:
    """How many replies are in the outbox."""
    count: int = await shop.one("SELECT count(*) AS n FROM shop.outbox")
    return count


async def test_the_cause_of_the_delay_is_explained_in_both_languages(shop: Shop) -> None:
    """Why A1234 is late is told from its facts: promised day, cause, last event, expected day."""
    await shop.seed_at("2026-06-10 12:00+02")
    told = await shop.call("explain_delay", order_id="A1234")
    assert (told["late"], told["days_late"], told["cause"], told["expected_on"]) == (True, 2, "customs", "2026-06-12")
    assert told["text"] == {
        "en": "Order A1234 is 2 days late: it was promised for 8 June 2026 and is not delivered yet. The reason: "
        "customs in Leipzig holds the parcel because its commercial invoice was missing; the carrier has handed the "
        "invoice in and waits for the release. Last seen on 8 June 2026 in Leipzig: invoice handed in by the carrier. "
        "It is expected on 12 June 2026.",
        "zh": "订单 A1234 已延迟 2 天：承诺2026年6月8日送达，目前尚未送达。"
        "原因：包裹因缺少商业发票被莱比锡海关扣留；承运商已补交发票，正在等待放行。"
        "最近一次记录：2026年6月8日，Leipzig。预计2026年6月12日送达。",
    }


@pytest.mark.parametrize(
    ("order_id", "en", "zh"),
    [
        ("A1219", "a typhoon closed the airport of Shenzhen", "台风"),
        ("A1226", "It has not left the warehouse in Reno.", "包裹尚未离开Reno仓库。"),
        ("A1211", "It is not known yet when it will arrive.", "目前还不知道何时能送达。"),
        ("A1215", "no cause is recorded", "系统中没有记录原因"),
        ("A1190", "3 days late. The reason: the carrier sent the parcel to the wrong depot", "晚了 3 天"),
        ("A1130", "was delivered in time", "按时送达"),
        ("A1112", "was cancelled", "已取消"),
        ("A1249", "is not late: it is promised for", "没有延迟"),
    ],
)
async def test_every_state_of_an_order_has_its_explanation(shop: Shop, order_id: str, en: str, zh: str) -> None:
    """Late with and without a cause, in time, cancelled, on its way: each is told as it is, and nothing is made up."""
    told = await shop.call("explain_delay", order_id=order_id)
    assert en in told["text"]["en"]
    assert zh in told["text"]["zh"]


async def test_a_draft_is_in_the_customers_language_and_can_be_sent_as_it_is(shop: Shop) -> None:
    """The draft has the arguments of send_reply, is written in the customer's language, and sends nothing."""
    draft = await shop.call("draft_reply", order_id="A1219")
    assert (draft["language"], draft["recipient"]) == ("zh", "lin.meiling@example.com")
    assert draft["body"].startswith("林美玲，您好！\n\n非常抱歉：您的订单 A1219")
    assert await sent(shop) == 0
    letter = {name: draft[name] for name in ("order_id", "recipient", "subject", "body")}
    assert TOOLS["send_reply"].check_args(letter) == []
    assert (await shop.call("send_reply", **letter))["recipient"] == "lin.meiling@example.com"


@pytest.mark.parametrize(
    ("order_id", "asked"),
    [("A1223", "complete address"), ("A1211", "tell us which you prefer"), ("A1234", "You need not do anything")],
)
async def test_a_letter_says_what_the_customer_can_do(shop: Shop, order_id: str, asked: str) -> None:
    """A missing address is asked for, a lost parcel gives a choice, and else nothing is needed."""
    draft = await shop.call("draft_reply", order_id=order_id, language="en")
    assert draft["subject"] == f"Your order {order_id} is late"
    assert "we are sorry" in draft["body"]
    assert asked in draft["body"]


async def test_nobody_is_sorry_for_what_is_in_time(shop: Shop) -> None:
    """A letter about an order that is not late apologises for nothing."""
    for order_id in ("A1130", "A1249", "A1112"):
        draft = await shop.call("draft_reply", order_id=order_id, language="en")
        assert (draft["subject"], "sorry" in draft["body"]) == (f"Your order {order_id}", False)


@pytest.mark.parametrize(
    ("order_id", "en", "zh"),
    [
        ("A1201", "The refund of EUR ", "的退款尚未完成"),
        (
            "A1176",
            "We have refunded CNY 376.50 of CNY 753.00; CNY 376.50 are still to come.",
            "还有 CNY 376.50 将会退还",
        ),
        ("A1164", "We have refunded JPY 20,920 in full.", "我们已全额退款 JPY 20,920。"),
    ],
)
async def test_a_letter_about_a_return_states_the_money(shop: Shop, order_id: str, en: str, zh: str) -> None:
    """What was refunded and what is to come is told in the order's currency and digits."""
    for language, said in (("en", en), ("zh", zh)):
        draft = await shop.call("draft_reply", order_id=order_id, about="return", language=language)
        assert said in draft["body"]
        assert "IGNORE" not in draft["body"]


async def test_a_letter_about_a_return_needs_one(shop: Shop) -> None:
    """An order of which nothing came back gets no letter about its return."""
    with pytest.raises(ToolFailure, match="nothing of order A1234 was returned") as raised:
        await shop.call("draft_reply", order_id="A1234", about="return")
    assert raised.value.code == "NOT_FOUND"


async def test_a_reply_lies_in_the_outbox_exactly_as_written(shop: Shop) -> None:
    """What was approved is what is sent: recipient, subject and body, under the call's key."""
    reply = await shop.call("send_reply", **LETTER)
    (row,) = await shop.database.fetch("SELECT * FROM shop.outbox")
    assert {name: row[name] for name in LETTER} == LETTER
    assert (row["reply_id"], row["idempotency_key"]) == (reply["reply_id"], "key-1")


async def test_one_key_sends_one_reply(shop: Shop) -> None:
    """Ten simultaneous calls with one key put one letter into the outbox, and each is told which."""
    replies = await asyncio.gather(*(shop.call("send_reply", key="same", **LETTER) for _ in range(10)))
    assert all(reply == replies[0] for reply in replies)
    assert await sent(shop) == 1


async def test_the_probe_knows_whether_a_key_was_sent(shop: Shop) -> None:
    """After a crash the outbox answers: the reply as it was returned, or none; and asking sends nothing."""
    tool = TOOLS["send_reply"]
    assert await tool.ask_probe("key-1", shop.context()) is None
    reply = await shop.call("send_reply", **LETTER)
    assert await tool.ask_probe("key-1", shop.context()) == reply
    assert await tool.ask_probe("key-2", shop.context()) is None
    assert await sent(shop) == 1


@pytest.mark.parametrize("recipient", ["mallory@example.org", "hannah.becker@example.com.example.org"])
async def test_replies_go_to_the_orders_own_customer_only(shop: Shop, recipient: str) -> None:
    """No text, however it came about, can direct a letter elsewhere."""
    with pytest.raises(ToolFailure, match=r"replies go to hannah\.becker@example\.com only") as raised:
        await shop.call("send_reply", **{**LETTER, "recipient": recipient})
    assert raised.value.code == "RULE_VIOLATED"
    with pytest.raises(ToolFailure, match="A9999 does not exist"):
        await shop.call("send_reply", **{**LETTER, "order_id": "A9999"})
    assert await sent(shop) == 0


async def test_an_address_counts_in_any_case(shop: Shop) -> None:
    """Capital letters in the address are the same mailbox, and the stored address is the customer's own."""
    reply = await shop.call("send_reply", **{**LETTER, "recipient": "Hannah.Becker@Example.com"})
    assert reply["recipient"] == "hannah.becker@example.com"


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "Hello\r\nBcc: everybody@example.org"}, {"subject": " "}, {"body": ""}, {"body": " \n"},
        {"recipient": "hannah"}, {"recipient": "a@b, c@d"}, {"body": "x" * 10_001},
    ],
)  # fmt: skip
def test_a_letter_that_is_none_is_refused_before_any_call(wrong: dict[str, Any]) -> None:
    """A subject holds no line break to smuggle headers in, nothing is empty, and an address is one address."""
    assert {place for place, _ in TOOLS["send_reply"].check_args({**LETTER, **wrong})} == set(wrong)


def test_a_reply_is_guarded_by_its_declaration() -> None:
    """A letter leaves only as an irreversible, high-risk step; a reworded letter is still the same letter."""
    spec = TOOLS["send_reply"].spec
    assert (spec.effect, spec.risk, spec.retry.max_attempts) == ("irreversible", "high", 1)
    assert {"recipient", "subject", "body"} <= set(spec.sensitive_args or ())
    assert spec.identity_args == ("order_id", "recipient")
