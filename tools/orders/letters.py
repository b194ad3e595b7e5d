"""Letters to customers about a delay or a return, in English and Chinese, from facts alone."""

from __future__ import annotations

from tools.orders.models import Language, Order, Return, Shipment, Text
from tools.orders.wording import cause_text, day, delay_text, expected_text, joined, money

Letter = tuple[str, str]
"""Subject and body."""

_NEXT: dict[str, Text] = {
    "address": Text(
        en="Please answer this message with your complete address, including the house number.",
        zh="请回复本邮件，告诉我们包含门牌号的完整地址。",
    ),
    "lost": Text(
        en="If it is not found, we will send everything again or refund it: please tell us which you prefer.",
        zh="如果找不到包裹，我们会重新发货或退款：请告诉我们您的选择。",
    ),
    "wait": Text(
        en="You need not do anything. If you no longer want the order, answer this message and we will refund it.",
        zh="您无需做任何事。如果您不再需要此订单，请回复本邮件，我们将为您退款。",
    ),
}


def delay_letter(order: Order, shipment: Shipment | None, language: Language) -> Letter:
    """What a customer is told about where an order is; sorry only where it is late."""
    if shipment is None or not order.late:
        subject = Text(en=f"Your order {order.order_id}", zh=f"关于您的订单 {order.order_id}")
        return _letter(order, subject, [delay_text(order, shipment)], language)
    promised = day(order.promised_on)
    sorry = Text(
        en=f"we are sorry: your order {order.order_id} was promised for {promised.en} and has not reached you yet.",
        zh=f"非常抱歉：您的订单 {order.order_id} 承诺{promised.zh}送达，但目前尚未送达。",
    )
    subject = Text(en=f"Your order {order.order_id} is late", zh=f"您的订单 {order.order_id} 延迟送达")
    return _letter(
        order, subject, [joined(sorry, cause_text(shipment)), expected_text(shipment), _next(shipment)], language
    )


def return_letter(order: Order, returned: Return, language: Language) -> Letter:
    """What a customer is told about goods that came back and the money for them."""
    arrived = day(returned.received_at.date())
    came = Text(
        en=f"we received what you returned of order {order.order_id} on {arrived.en}.",
        zh=f"我们已于{arrived.zh}收到您订单 {order.order_id} 的退货。",
    )
    subject = Text(en=f"Your return of order {order.order_id}", zh=f"您的订单 {order.order_id} 的退货")
    return _letter(order, subject, [came, _refunded(returned)], language)


def _refunded(returned: Return) -> Text:
    value, refunded, owed = (
        money(amount, returned.currency) for amount in (returned.value, returned.refunded, returned.outstanding)
    )
    if returned.refund_state == "full":
        return Text(en=f"We have refunded {value} in full.", zh=f"我们已全额退款 {value}。")
    if returned.refund_state == "partial":
        return Text(
            en=f"We have refunded {refunded} of {value}; {owed} are still to come.",
            zh=f"我们已退款 {refunded}（应退 {value}），还有 {owed} 将会退还。",
        )
    return Text(en=f"The refund of {value} is still to come.", zh=f"{value} 的退款尚未完成，我们会尽快办理。")


def _next(shipment: Shipment) -> Text:
    if shipment.delay_cause == "address":
        return _NEXT["address"]
    return _NEXT["lost" if shipment.status == "lost" else "wait"]


def _letter(order: Order, subject: Text, paragraphs: list[Text], language: Language) -> Letter:
    name = " ".join(order.customer.name.split())
    if language == "zh":
        return subject.zh, "\n\n".join([f"{name}，您好！", *(one.zh for one in paragraphs), "客户服务部"])
    return subject.en, "\n\n".join([f"Dear {name},", *(one.en for one in paragraphs), "Your customer service"])
