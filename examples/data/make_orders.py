"""Writes orders.csv: an export as a German shop system gives it, with known faults sown in.

Run it as `python examples/data/make_orders.py`. Semicolons, Latin-1, decimal commas, dotted dates, two lines above the
header. The same seed gives the same bytes, and FAULTS says what is wrong in how many rows, so that a report can be
checked against it.
"""

from __future__ import annotations

import csv
import io
import random
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

ORDERS = 400
FAULTS = {
    "negative_amount": 7, "time_order": 5, "duplicate_ids": 4, "allowed_values": 3, "outliers": 2, "missing": 3,
    "bad_values": 2, "ragged": 1,
}  # fmt: skip
"""Rows per rule. No row has two faults."""

_CUSTOMERS = (
    "Jürgen Müller", "Zoë Schröder", "André Lefèvre", "María Núñez", "Søren Jørgensen", "Anna Weiß", "Chloé Dubois",
    "Paul Becker", "Émile Zola", "Käthe Groß", "Inés Peña", "Lars Öberg", "Tom Baker", "Ruth O'Neill", "Jörg Voß",
)  # fmt: skip
_PRODUCTS = (("Espresso 1 kg", "18.90"), ("Kaffeemühle", "89.00"), ("Kettle", "54.50"), ("Teapot", "32.00"),
             ("Filter, 100 Stück", "4.20"), ("Siebträger", "649.00"), ("Crème-Becher", "12.75"))  # fmt: skip
_COUNTRIES = ("DE", "DE", "DE", "AT", "CH", "FR", "NL")
_STATUSES = ("paid", "shipped", "delivered", "delivered", "delivered", "cancelled")
_OPENED = datetime.fromisoformat("2026-01-02 08:00")
_HEADER = ["order_id", "customer", "product", "quantity", "amount", "currency", "status", "country", "ordered_at",
           "shipped_at", "delivered_at"]  # fmt: skip


def money(amount: Decimal) -> str:
    """1234.5 as 1.234,50."""
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def stamp(at: datetime) -> str:
    """05.03.2026 14:07."""
    return at.strftime("%d.%m.%Y %H:%M")


def order(number: int, rng: random.Random) -> list[str]:
    """One sound order."""
    product, price = rng.choice(_PRODUCTS)
    quantity = rng.choice((1, 1, 1, 2, 2, 3, 4))
    ordered = _OPENED + timedelta(minutes=number * 380 + rng.randrange(300))
    shipped = ordered + timedelta(hours=rng.randrange(5, 70))
    status = rng.choice(_STATUSES)
    delivered = shipped + timedelta(hours=rng.randrange(18, 96))
    return [
        f"B-{20260000 + number}", rng.choice(_CUSTOMERS), product, str(quantity), money(Decimal(price) * quantity),
        "EUR", status, rng.choice(_COUNTRIES), stamp(ordered),
        stamp(shipped) if status in {"shipped", "delivered"} else "",
        stamp(delivered) if status == "delivered" else "",
    ]  # fmt: skip


def sow(rows: list[list[str]], rng: random.Random) -> None:
    """Puts the faults in, each into a row of its own."""
    delivered = [place for place, row in enumerate(rows) if row[10] and place > 20]
    places = iter(rng.sample(delivered, sum(FAULTS.values()) - 1))
    for _ in range(FAULTS["negative_amount"]):
        row = rows[next(places)]
        row[4] = f"-{row[4]}"
    for _ in range(FAULTS["time_order"]):
        row = rows[next(places)]
        row[9], row[10] = row[10], row[9]
    for status in ("deliverd", "DELIVERED?", "unknown"):
        rows[next(places)][6] = status
    for amount in ("189.000,00", "64.900,00"):
        rows[next(places)][4] = amount
    for column in (0, 4, 8):
        rows[next(places)][column] = ""
    for column, bad in ((8, "31.02.2026 10:15"), (4, "on request")):
        rows[next(places)][column] = bad
    short = rows[next(places)]
    del short[9:]
    for _ in range(FAULTS["duplicate_ids"] - 1):
        twin = rng.randrange(0, 15)
        rows.insert(next(places), [*rows[twin]])
    rows.append([*rows[3]])


def text() -> str:
    """The whole export."""
    rng = random.Random(20260105)  # noqa: S311 - the same file every time
    rows = [order(number, rng) for number in range(1, ORDERS + 1)]
    sow(rows, rng)
    target = io.StringIO()
    target.write("Kaffeehaus Nord: export of orders\r\nAs of 30.06.2026 23:59\r\n")
    csv.writer(target, delimiter=";").writerows([_HEADER, *rows])
    return target.getvalue()


if __name__ == "__main__":
    Path(__file__).with_name("orders.csv").write_bytes(text().encode("latin-1"))
