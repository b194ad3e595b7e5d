"""The tool that lists returned goods and what of them is refunded."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from plans.failure import ToolFailure
from tools.context import ToolContext
from tools.orders.arguments import Day, Limit, OrderId, at_place, check_days
from tools.orders.models import Amount, Period, Return, ReturnList, Span
from tools.orders.toolkit import orders, read
from tools.orders.wording import returns_text

_SPAN = """
SELECT starts, ends, starts AT TIME ZONE shop.zone() AS starts_local, ends AT TIME ZONE shop.zone() AS ends_local,
       shop.zone() AS time_zone
FROM shop.span(%(period)s::text, %(last_days)s::integer, %(since)s::date, %(until)s::date)"""

_FOUND = """
FROM shop.return_facts
WHERE (%(starts)s::timestamptz IS NULL OR received_at >= %(starts)s) AND received_at < %(ends)s
  AND (%(refunded)s::boolean IS NULL OR (refund_state = 'full') = %(refunded)s)"""

_LIST = f"""
SELECT *, received_at AT TIME ZONE shop.zone() AS received_local {_FOUND}
ORDER BY received_at DESC, return_id DESC LIMIT %(limit)s"""

_TOTALS = f"SELECT currency, sum(outstanding) AS outstanding, count(*) AS matches {_FOUND} GROUP BY 1 ORDER BY 1"

_OF_ORDER = """
SELECT *, received_at AT TIME ZONE shop.zone() AS received_local
FROM shop.return_facts WHERE order_id = %(order_id)s"""


@orders.tool(effect="read", timeout_s=2, output_trust="untrusted")
async def list_returns(
    ctx: ToolContext,
    *,
    period: Annotated[
        Period | None, Field(description="calendar week (from Monday) or month in the shop's zone")
    ] = None,
    last_days: Annotated[int | None, Field(ge=1, le=3660, description="so many days back from now")] = None,
    since: Day | None = None,
    until: Day | None = None,
    refunded: Annotated[bool | None, Field(description="true: in full; false: something is still owed")] = None,
    limit: Limit = 50,
) -> ReturnList:
    """List returned goods with what of them is refunded and what is still owed; the newest first.

    Say when by one of: period (e.g. last_week), last_days, or since and until (both days included); without any,
    all returns. For "returned last week and not refunded yet": period "last_week", refunded false.
    """
    _check_one_way(period, last_days, since, until)
    when = {"period": period, "last_days": last_days, "since": since, "until": until}
    (span,) = await read(ctx, _SPAN, when)
    wanted = {"starts": span["starts"], "ends": span["ends"], "refunded": refunded, "limit": limit}
    found = tuple(_return(row) for row in await read(ctx, _LIST, wanted))
    totals = await read(ctx, _TOTALS, wanted)
    outstanding = tuple(Amount(amount=row["outstanding"], currency=row["currency"]) for row in totals)
    matches = sum(row["matches"] for row in totals)
    looked_at = _span(span)
    return ReturnList(
        returns=found,
        matches=matches,
        outstanding=outstanding,
        span=looked_at,
        text=returns_text(found, matches, outstanding, looked_at, refunded),
    )


async def return_of(ctx: ToolContext, order_id: OrderId) -> Return:
    """The return of an order. ToolFailure NOT_FOUND when nothing came back."""
    rows = await read(ctx, _OF_ORDER, {"order_id": order_id.upper()})
    if not rows:
        raise ToolFailure("NOT_FOUND", f"nothing of order {order_id.upper()} was returned")
    return _return(rows[0])


def _check_one_way(period: object, last_days: object, since: object, until: object) -> None:
    given = [
        said
        for said, value in (("period", period), ("last_days", last_days), ("since/until", since or until))
        if value is not None
    ]
    if len(given) > 1:
        raise ToolFailure("INVALID_ARGS", f"{' and '.join(given)} were given; say when in one of these ways only")
    check_days(since, until)  # type: ignore[arg-type]


def _return(row: dict[str, Any]) -> Return:
    same = ("return_id", "order_id", "reason", "note", "value", "refunded", "outstanding", "currency", "refund_state")
    return Return(
        **{name: row[name] for name in same},
        customer_name=row["name"],
        received_at=at_place(row["received_at"], row["received_local"]),
    )


def _span(row: dict[str, Any]) -> Span:
    start: datetime | None = row["starts"] and at_place(row["starts"], row["starts_local"])
    return Span(start=start, end=at_place(row["ends"], row["ends_local"]), time_zone=row["time_zone"])
