"""What the tools' arguments may be, described for whoever plans, and checks that need more than one of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from plans.failure import ToolFailure

OrderId = Annotated[str, Field(pattern=r"^[Aa][0-9]{3,9}$", description="order number such as A1234")]
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2199, 12, 31), description="day in the shop's time zone")]
Limit = Annotated[int, Field(ge=1, le=200, description="most rows to return")]
PositiveAmount = Annotated[
    Decimal, Field(gt=0, max_digits=14, decimal_places=4, description="in the order's currency, e.g. '12.50'")
]
OneLine = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\r\n]*\S[^\r\n]*$")]
LongText = Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"\S")]
Address = Annotated[str, Field(max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")]


def check_days(since: date | None, until: date | None) -> None:
    """ToolFailure INVALID_ARGS when the days end before they start."""
    if since is not None and until is not None and until < since:
        raise ToolFailure("INVALID_ARGS", f"until ({until}) is before since ({since}); swap them")


def at_place(at: datetime, local: datetime) -> datetime:
    """The same instant with the offset of the place whose clocks showed `local` (naive) then.

    PostgreSQL computes local times, from its own time zone tables: Python's may be missing on a small machine.
    """
    offset = local - at.replace(tzinfo=None) + (at.utcoffset() or timedelta())
    return at.astimezone(timezone(offset))
