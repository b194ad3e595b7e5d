"""What the orders toolkit returns: small, frozen, and JSON without loss (money is text, instants have an offset)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

Currency = Literal["EUR", "USD", "CNY", "JPY"]
Language = Literal["en", "zh"]
OrderStatus = Literal["placed", "packed", "shipped", "delivered", "cancelled"]
DelayCause = Literal["customs", "weather", "out_of_stock", "carrier", "address"]
ReturnReason = Literal["damaged", "wrong_item", "not_wanted", "arrived_late"]
RefundState = Literal["none", "partial", "full"]
Period = Literal["this_week", "last_week", "this_month", "last_month"]
Priority = Literal["low", "normal", "high", "urgent"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(_Frozen):
    """The same text in English and in Chinese."""

    en: str
    zh: str


class Customer(_Frozen):
    """Who ordered. `language` is what to write to them in."""

    customer_id: str
    name: str
    email: str
    language: Language
    country: str
    city: str
    time_zone: str


class OrderLine(_Frozen):
    """One article of an order; `unit_price` is in the order's currency."""

    sku: str
    title: str
    quantity: int
    unit_price: Decimal


class OrderSummary(_Frozen):
    """An order in a list. `late`: promised, the day is over where the customer lives, and not delivered."""

    order_id: str
    status: OrderStatus
    customer_name: str
    country: str
    placed_at: AwareDatetime
    promised_on: date
    late: bool
    days_late: int
    total: Decimal
    currency: Currency


class OrderList(_Frozen):
    """The newest orders first; `matches` counts those left out by the limit too."""

    orders: tuple[OrderSummary, ...]
    matches: int


class Order(_Frozen):
    """One order. `refunded` leaves out failed refunds, `refundable` is what is left of `total`; `note` is the
    customer's own text."""

    order_id: str
    status: OrderStatus
    customer: Customer
    lines: tuple[OrderLine, ...]
    total: Decimal
    currency: Currency
    refunded: Decimal
    refundable: Decimal
    placed_at: AwareDatetime
    promised_on: date
    late: bool
    days_late: int
    ships_from: str
    note: str


class ShipmentEvent(_Frozen):
    """What happened to a parcel; `at` has the offset of the place."""

    at: AwareDatetime
    place: str
    event: str


class Shipment(_Frozen):
    """The way of an order's parcel. `expected_on` null: nobody knows. `delay_cause` null: no delay, or none known."""

    order_id: str
    status: Literal["waiting", "in_transit", "held", "lost", "delivered"]
    carrier: str
    tracking: str
    ships_from: str
    shipped_at: AwareDatetime | None
    promised_on: date
    expected_on: date | None
    delivered_at: AwareDatetime | None
    late: bool
    days_late: int
    delay_cause: DelayCause | None
    delay_detail: Text
    events: tuple[ShipmentEvent, ...]


class Span(_Frozen):
    """The stretch of time that was looked at, start included and end not, in the shop's time zone; start null: ever."""

    start: AwareDatetime | None
    end: AwareDatetime
    time_zone: str


class Return(_Frozen):
    """Goods that came back. `outstanding` is what of their `value` is not refunded yet; pending refunds count as
    refunded, failed ones do not. `note` is the customer's own text."""

    return_id: str
    order_id: str
    customer_name: str
    received_at: AwareDatetime
    reason: ReturnReason
    note: str
    value: Decimal
    refunded: Decimal
    outstanding: Decimal
    currency: Currency
    refund_state: RefundState


class Amount(_Frozen):
    """Money of one currency."""

    amount: Decimal
    currency: Currency


class ReturnList(_Frozen):
    """The newest returns first; `matches` and `outstanding` (one amount per currency) count those left out by the
    limit too. `text` says it in words."""

    returns: tuple[Return, ...]
    matches: int
    outstanding: tuple[Amount, ...]
    span: Span
    text: Text


class RefundEntry(_Frozen):
    """One refund as the payment gateway knows it."""

    refund_id: str
    amount: Decimal
    currency: Currency
    status: Literal["pending", "settled", "failed"]
    requested_at: AwareDatetime
    settled_at: AwareDatetime | None


class RefundStatus(_Frozen):
    """The refunds of an order as of `as_of`; refunds made in the `age_s` seconds since then are not in it. `text` says
    it in words, its age included."""

    order_id: str
    source: Literal["gateway", "cache"]
    as_of: AwareDatetime
    age_s: int
    refunds: tuple[RefundEntry, ...]
    text: Text


class DelayExplanation(_Frozen):
    """Why an order is late, from the facts alone; `late` false: it is not, or not any more."""

    order_id: str
    late: bool
    days_late: int
    cause: DelayCause | None
    expected_on: date | None
    language: Language
    text: Text


class Draft(_Frozen):
    """A reply that is ready to be read by a person and sent."""

    order_id: str
    recipient: str
    language: Language
    subject: str
    body: str


class Ticket(_Frozen):
    """A task for the shop's people."""

    ticket_id: str
    order_id: str | None
    priority: Priority
    status: str
    opened_at: AwareDatetime


class Refund(_Frozen):
    """A refund that was asked of the gateway, and what of the order can still be refunded after it."""

    refund_id: str
    order_id: str
    amount: Decimal
    currency: Currency
    status: Literal["pending", "settled", "failed"]
    requested_at: AwareDatetime
    refundable: Decimal


class Reply(_Frozen):
    """A reply in the outbox."""

    reply_id: str
    order_id: str
    recipient: str
    queued_at: AwareDatetime
