"""The orders toolkit: a shop's orders, shipments, returns, refunds, tickets and replies.

    find_orders(customer?, status?, late?, currency?, country?, placed_since?, placed_until?, limit=20) -> OrderList
    get_order(order_id) -> Order
    get_shipment(order_id) -> Shipment
    list_returns(period?, last_days?, since?, until?, refunded?, limit=50) -> ReturnList
    get_refund_status_gateway(order_id) -> RefundStatus      falls back to the next
    get_refund_status_cached(order_id) -> RefundStatus       `as_of`, `age_s` and `text` say how old it is
    explain_delay(order_id) -> DelayExplanation              `text.en`, `text.zh`, no model needed
    draft_reply(order_id, about="delay"|"return", language?) -> Draft     nothing is sent
    open_ticket(subject, body, order_id?, priority="normal") -> Ticket    transactional
    issue_refund(order_id, amount, currency, reason) -> Refund            idempotent, high risk
    send_reply(order_id, recipient, subject, body) -> Reply               irreversible, high risk

The results are the models of tools/orders/models.py: money as text with the currency's own digits ("12.50", JPY
"1250"), instants with their offset, days (`promised_on`, `expected_on`) where the customer lives.

Last week has two meanings, and both can be asked for: `period="last_week"` is Monday to Monday in the shop's time
zone, `last_days=7` reaches back from now. Periods: this_week, last_week, this_month, last_month. `since` and `until`
are whole days, both included. At most one of the three ways; `ReturnList.span` says what was meant.

Everything is read and written through the connection "shop", except tickets, which are written together with the
record of the step. Time is shop.clock(), which tests and demonstrations can set (see shop.sql).
"""

from tools.orders import examples, lookups, refunds, replies, returns, tickets  # noqa: F401 (each declares its part)
from tools.orders.toolkit import orders

__all__ = ["orders"]
