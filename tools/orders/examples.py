"""Two goals about orders, and how these tools serve them: planners are shown them."""

from __future__ import annotations

from tools.orders.toolkit import orders

orders.example(
    "Why is order A1017 late? Tell the customer.",
    {
        "steps": [
            {"id": "s1", "title": "Find the cause", "tool": "explain_delay", "args": {"order_id": "A1017"},
             "reason": "It knows the order and its shipment."},
            {"id": "s2", "title": "Write the letter", "tool": "draft_reply", "args": {"order_id": "A1017"},
             "depends_on": ["s1"], "reason": "It finds the customer's address and the right words."},
            {"id": "s3", "title": "Send it", "tool": "send_reply", "reason": "The goal asks to tell the customer.",
             "args": {"order_id": "A1017", "recipient": "${s2.recipient}", "subject": "${s2.subject}",
                      "body": "${s2.body}"}},
        ],
        "answer": "${s1.text.en}",
    },
)  # fmt: skip
orders.example(
    "Where are the parcels of all late orders?",
    {
        "steps": [
            {"id": "s1", "title": "Find late orders", "tool": "find_orders", "args": {"late": True},
             "reason": "Only late ones are asked for."},
            {"id": "s2", "title": "Look each shipment up", "tool": "get_shipment", "for_each": "${s1.orders}",
             "args": {"order_id": "${item.order_id}"}, "reason": "The shipment knows where the parcel is."},
        ],
        "answer": "${s2}",
    },
)  # fmt: skip
