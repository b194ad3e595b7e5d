"""Facts about orders as sentences, in English and Chinese: the same facts always give the same text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from tools.orders.models import Amount, Order, RefundEntry, Return, Shipment, Span, Text

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_UNKNOWN_CAUSE = Text(en="no cause is recorded", zh="系统中没有记录原因")
_LISTED = 20


def day(on: date) -> Text:
    """27 November 2026, 2026年11月27日."""
    return Text(en=f"{on.day} {_MONTHS[on.month - 1]} {on.year}", zh=f"{on.year}年{on.month}月{on.day}日")


def money(amount: Decimal, currency: str) -> str:
    """EUR 1,232.00, JPY 20,920: the currency's own digits, which the amount already has."""
    return f"{currency} {amount:,}"


def days(count: int) -> str:
    """1 day, 2 days."""
    return "1 day" if count == 1 else f"{count} days"


def joined(*sentences: Text | None) -> Text:
    """The sentences one after the other; those that are None have nothing to say."""
    said = [sentence for sentence in sentences if sentence is not None]
    return Text(en=" ".join(one.en for one in said), zh="".join(one.zh for one in said))


def delay_text(order: Order, shipment: Shipment | None) -> Text:
    """Why an order is late and when it is expected; or that it is not late. Days are those of the customer's place."""
    if shipment is None:
        return Text(
            en=f"Order {order.order_id} was cancelled and is not delivered.",
            zh=f"订单 {order.order_id} 已取消，不会送达。",
        )
    if shipment.delivered_at is not None:
        return joined(_delivered(order, shipment.delivered_at), cause_text(shipment) if order.days_late else None)
    if not order.late:
        return joined(_in_time(order), expected_text(shipment))
    return joined(_late(order), cause_text(shipment), _last_event(shipment), expected_text(shipment))


def cause_text(shipment: Shipment) -> Text:
    """The recorded cause of a delay, or that there is none."""
    known = shipment.delay_detail if shipment.delay_cause else _UNKNOWN_CAUSE
    return Text(en=f"The reason: {known.en}.", zh=f"原因：{known.zh}。")


def expected_text(shipment: Shipment) -> Text:
    """The day the parcel is expected, or that nobody knows it."""
    if shipment.expected_on is None:
        return Text(en="It is not known yet when it will arrive.", zh="目前还不知道何时能送达。")
    when = day(shipment.expected_on)
    return Text(en=f"It is expected on {when.en}.", zh=f"预计{when.zh}送达。")


def returns_text(
    found: Sequence[Return], matches: int, outstanding: Sequence[Amount], span: Span, refunded: bool | None
) -> Text:
    """How many returns there were in the span, what is still owed, and a line for each (at most twenty)."""
    lines = [_return_line(one) for one in found[:_LISTED]]
    left_out = matches - len(lines)
    more = Text(en=f"- and {left_out} more", zh=f"- 另有 {left_out} 件") if left_out else None
    listed = [*lines, *([more] if more else [])]
    head = _returns_head(matches, outstanding, span, refunded)
    return Text(
        en="\n".join([head.en, *(line.en for line in listed)]), zh="\n".join([head.zh, *(line.zh for line in listed)])
    )


def refunds_text(order_id: str, refunds: Sequence[RefundEntry], as_of: datetime, age_s: int | None) -> Text:
    """How the refunds of an order stand; `age_s` is given when the answer is that old, and the text says so."""
    when = f"{as_of:%Y-%m-%d %H:%M} UTC"
    if age_s is None:
        head = Text(en=f"Refunds of order {order_id} at {when}: ", zh=f"订单 {order_id} 的退款（{when}）：")
    else:
        age = _age(age_s)
        head = Text(
            en=f"Refunds of order {order_id} as the gateway reported them {age.en} ago, at {when} (later ones are "
            "not in it): ",
            zh=f"订单 {order_id} 的退款（支付网关 {age.zh}前即 {when} 的记录，不含此后的退款）：",
        )
    listed = [_refund(one) for one in refunds] or [Text(en="none", zh="无")]
    return Text(
        en=head.en + ", ".join(one.en for one in listed) + ".", zh=head.zh + "、".join(one.zh for one in listed) + "。"
    )


def _refund(one: RefundEntry) -> Text:
    state = {"pending": "处理中", "settled": "已到账", "failed": "失败"}[one.status]
    paid = money(one.amount, one.currency)
    return Text(en=f"{one.refund_id} {paid} {one.status}", zh=f"{one.refund_id} {paid} {state}")


def _age(seconds: int) -> Text:
    hours, minutes = divmod(seconds // 60, 60)
    if hours >= 48:
        return Text(en=f"{hours // 24} days", zh=f"{hours // 24} 天")
    if hours:
        return Text(en=f"{hours} h {minutes} min", zh=f"{hours} 小时 {minutes} 分钟")
    return Text(en=f"{minutes} min", zh=f"{minutes} 分钟")


def _late(order: Order) -> Text:
    promised = day(order.promised_on)
    return Text(
        en=f"Order {order.order_id} is {days(order.days_late)} late: it was promised for {promised.en} and is not "
        "delivered yet.",
        zh=f"订单 {order.order_id} 已延迟 {order.days_late} 天：承诺{promised.zh}送达，目前尚未送达。",
    )


def _in_time(order: Order) -> Text:
    promised = day(order.promised_on)
    return Text(
        en=f"Order {order.order_id} is not late: it is promised for {promised.en}.",
        zh=f"订单 {order.order_id} 没有延迟：承诺{promised.zh}送达。",
    )


def _delivered(order: Order, at: datetime) -> Text:
    when = day(at.date())
    if not order.days_late:
        return Text(
            en=f"Order {order.order_id} was delivered in time, on {when.en}.",
            zh=f"订单 {order.order_id} 已于{when.zh}按时送达。",
        )
    return Text(
        en=f"Order {order.order_id} was delivered on {when.en}, {days(order.days_late)} late.",
        zh=f"订单 {order.order_id} 已于{when.zh}送达，晚了 {order.days_late} 天。",
    )


def _last_event(shipment: Shipment) -> Text | None:
    if not shipment.events:
        return Text(
            en=f"It has not left the warehouse in {shipment.ships_from}.", zh=f"包裹尚未离开{shipment.ships_from}仓库。"
        )
    last = shipment.events[-1]
    when = day(last.at.date())
    return Text(
        en=f"Last seen on {when.en} in {last.place}: {last.event}.",
        zh=f"最近一次记录：{when.zh}，{last.place}。",
    )


def _returns_head(matches: int, outstanding: Sequence[Amount], span: Span, refunded: bool | None) -> Text:
    state = {
        None: Text(en="", zh=""),
        True: Text(en=" and refunded in full", zh="且已全额退款"),
        False: Text(en=" and not refunded in full yet", zh="但尚未全额退款"),
    }[refunded]
    owed = [money(one.amount, one.currency) for one in outstanding if one.amount]
    owing = Text(en=f"; still owed: {', '.join(owed)}", zh=f"；尚欠：{'、'.join(owed)}") if owed else Text(en="", zh="")
    when = _span_text(span)
    noun = "order was" if matches == 1 else "orders were"
    return Text(
        en=f"{matches} {noun} returned {when.en}{state.en}{owing.en}.",
        zh=f"{when.zh}，共有 {matches} 个订单退货{state.zh}{owing.zh}。",
    )


def _span_text(span: Span) -> Text:
    end = f"{span.end:%Y-%m-%d %H:%M} ({span.time_zone})"
    if span.start is None:
        return Text(en=f"until {end}", zh=f"截至 {end}")
    return Text(en=f"from {span.start:%Y-%m-%d %H:%M} to {end}", zh=f"{span.start:%Y-%m-%d %H:%M} 至 {end}")


def _return_line(one: Return) -> Text:
    value, refunded, owed = (money(amount, one.currency) for amount in (one.value, one.refunded, one.outstanding))
    state = {
        "none": Text(en=f"nothing refunded of {value}", zh=f"应退 {value}，尚未退款"),
        "partial": Text(en=f"{refunded} of {value} refunded, {owed} still owed", zh=f"已退 {refunded}，尚欠 {owed}"),
        "full": Text(en=f"{value} refunded", zh=f"已全额退款 {value}"),
    }[one.refund_state]
    return Text(en=f"- {one.order_id}: {state.en}", zh=f"- {one.order_id}：{state.zh}")
