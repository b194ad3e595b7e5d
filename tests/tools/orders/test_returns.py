"""Returns and what is owed for them: spans by the shop's calendar, across midnight and the change of clocks."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from plans.failure import ToolFailure
from plans.values import JSON
from tests.tools.orders.shop import TOOLS, Shop

AUTUMN = "2026-10-25"  # clocks go back in Amsterdam: the day has 25 hours
SPRING = "2026-03-29"  # clocks go forward: the day has 23 hours


async def span(shop: Shop, **args: JSON) -> tuple[str | None, str]:
    """The stretch of time that a call looked at."""
    found = (await shop.call("list_returns", **args))["span"]
    assert found["time_zone"] == "Europe/Amsterdam"
    return found["start"], found["end"]


def hours(of: tuple[str | None, str]) -> float:
    """How long a span really lasts."""
    start, end = of
    assert start is not None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() / 3600


@pytest.mark.parametrize(
    ("now", "start", "end"),
    [
        ("2026-06-10 12:00+02", "2026-06-01T00:00:00+02:00", "2026-06-08T00:00:00+02:00"),
        ("2026-06-14 23:59:59+02", "2026-06-01T00:00:00+02:00", "2026-06-08T00:00:00+02:00"),
        ("2026-06-15 00:00+02", "2026-06-08T00:00:00+02:00", "2026-06-15T00:00:00+02:00"),
        ("2026-06-14 21:00-05", "2026-06-08T00:00:00+02:00", "2026-06-15T00:00:00+02:00"),
        ("2027-01-01 09:00+01", "2026-12-21T00:00:00+01:00", "2026-12-28T00:00:00+01:00"),
        ("2026-03-30 00:30+02", "2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        ("2026-10-26 00:30+01", "2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
    ],
)
async def test_last_week_is_monday_to_monday_in_the_shops_zone(shop: Shop, now: str, start: str, end: str) -> None:
    """Last week begins and ends at Amsterdam's midnight, whatever the offset at either end."""
    await shop.stop_clock(now)
    assert await span(shop, period="last_week") == (start, end)


@pytest.mark.parametrize(("day", "length"), [(SPRING, 167), (AUTUMN, 169), ("2026-06-14", 168)])
async def test_the_last_seven_days_reach_back_to_the_same_time_of_day(shop: Shop, day: str, length: int) -> None:
    """Seven days over a change of clocks are an hour shorter or longer, and start when the clock showed the same."""
    noon = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    await shop.stop_clock(f"{noon} 12:00 Europe/Amsterdam")
    found = await span(shop, last_days=7)
    assert (found[0] or "")[11:16] == found[1][11:16] == "12:00"
    assert hours(found) == length


@pytest.mark.parametrize(("day", "length"), [(SPRING, 23), (AUTUMN, 25)])
async def test_a_day_includes_all_of_its_hours(shop: Shop, day: str, length: int) -> None:
    """Since and until the same day is that whole day, also when it has 23 or 25 hours."""
    assert hours(await span(shop, since=day, until=day)) == length


async def test_weeks_and_months_that_have_begun_end_now(shop: Shop) -> None:
    """This week, this month and last month are the calendar's; what is left out is open to the past."""
    await shop.stop_clock("2026-03-01 08:00+01")
    now = "2026-03-01T08:00:00+01:00"
    assert await span(shop, period="this_week") == ("2026-02-23T00:00:00+01:00", now)
    assert await span(shop, period="this_month") == ("2026-03-01T00:00:00+01:00", now)
    assert await span(shop, period="last_month") == ("2026-02-01T00:00:00+01:00", "2026-03-01T00:00:00+01:00")
    assert await span(shop, until="2026-02-28") == (None, "2026-03-01T00:00:00+01:00")
    assert await span(shop) == (None, now)


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/New_York"])
async def test_a_return_at_midnight_belongs_to_the_week_that_begins(shop: Shop, zone: str) -> None:
    """The last microsecond of Sunday is last week, midnight itself is not, in whatever zone the shop keeps."""
    await shop.set("time_zone", zone)
    await shop.stop_clock(f"2026-03-31 10:00 {zone}")
    for order_id, at in (
        ("A1201", "2026-03-29 23:59:59.999999"),
        ("A1188", "2026-03-30 00:00"),
        ("A1197", "2026-03-23 00:00"),
    ):
        await shop.database.execute(
            "UPDATE shop.returns SET received_at = %s::timestamp AT TIME ZONE %s WHERE order_id = %s",
            (at, zone, order_id),
        )
    await shop.database.execute("DELETE FROM shop.returns WHERE order_id NOT IN ('A1201', 'A1188', 'A1197')")
    found = await shop.call("list_returns", period="last_week")
    assert [one["order_id"] for one in found["returns"]] == ["A1201", "A1197"]


@pytest.mark.parametrize("weekday", range(7))
async def test_any_week_holds_returns_of_each_state(shop: Shop, weekday: int) -> None:
    """On whatever weekday the shop is set up, last week and the last seven days hold each state of refunding."""
    for time in ("00:05", "23:55"):
        await shop.seed_at(f"2026-06-{1 + weekday:02} {time}+02")
        for when in ({"period": "last_week"}, {"last_days": 7}):
            found = await shop.call("list_returns", **when)
            assert {one["refund_state"] for one in found["returns"]} == {"none", "partial", "full"}


async def test_not_refunded_means_that_something_is_still_owed(shop: Shop) -> None:
    """Partly refunded, failed and untouched returns are owed; pending and settled refunds are not."""
    owed = await shop.call("list_returns", last_days=14, refunded=False)
    done = await shop.call("list_returns", last_days=14, refunded=True)
    everything = await shop.call("list_returns", last_days=14)
    assert all(Decimal(one["outstanding"]) > 0 and one["refund_state"] != "full" for one in owed["returns"])
    assert all(Decimal(one["outstanding"]) == 0 and one["refund_state"] == "full" for one in done["returns"])
    assert owed["matches"] + done["matches"] == everything["matches"] == 16
    states = {one["order_id"]: one["refund_state"] for one in everything["returns"]}
    assert (states["A1185"], states["A1197"], states["A1176"], states["A1169"]) == ("none", "full", "partial", "full")


async def test_sums_are_per_currency_and_beyond_the_limit(shop: Shop) -> None:
    """What is owed is summed for each currency by itself, over all matches and not only those listed."""
    everything = await shop.call("list_returns", refunded=False)
    expected: dict[str, Decimal] = {}
    for one in everything["returns"]:
        expected[one["currency"]] = expected.get(one["currency"], Decimal()) + Decimal(one["outstanding"])
    short = await shop.call("list_returns", refunded=False, limit=1)
    assert (len(short["returns"]), short["matches"]) == (1, everything["matches"])
    assert short["outstanding"] == everything["outstanding"]
    assert {sum_["currency"]: Decimal(sum_["amount"]) for sum_ in short["outstanding"]} == expected
    assert len(expected) > 2


async def test_a_refund_settles_what_is_owed(shop: Shop) -> None:
    """A refund through the tool takes the return off the list of those still owed."""
    before = await shop.call("list_returns", last_days=7, refunded=False)
    one = next(found for found in before["returns"] if found["refund_state"] == "partial")
    asked = {"order_id": one["order_id"], "amount": one["outstanding"], "currency": one["currency"], "reason": "return"}
    await shop.call("issue_refund", **asked)
    after = await shop.call("list_returns", last_days=7, refunded=False)
    assert [found["order_id"] for found in after["returns"]] == [
        found["order_id"] for found in before["returns"] if found is not one
    ]


async def test_the_list_is_told_in_words(shop: Shop) -> None:
    """The text names span, count, sums and each order, in both languages, with no customer's words in it."""
    await shop.seed_at("2026-06-10 12:00+02")
    found = await shop.call("list_returns", period="last_week", refunded=False)
    text = found["text"]
    head = f"{found['matches']} orders were returned from 2026-06-01 00:00 to 2026-06-08 00:00 (Europe/Amsterdam)"
    assert text["en"].startswith(f"{head} and not refunded in full yet; still owed: CNY ")
    assert text["zh"].startswith("2026-06-01 00:00 至 2026-06-08 00:00 (Europe/Amsterdam)，共有 ")
    for one in found["returns"]:
        assert f"- {one['order_id']}: " in text["en"]
        assert f"- {one['order_id']}：" in text["zh"]
    assert "IGNORE" not in text["en"] + text["zh"]
    assert "HYPERLINK" not in text["en"] + text["zh"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"period": "last_week", "last_days": 7}, "period and last_days were given"),
        ({"last_days": 7, "until": "2026-01-01"}, "last_days and since/until were given"),
        ({"since": "2026-02-01", "until": "2026-01-31"}, "is before since"),
    ],
)
async def test_contradicting_spans_are_refused(shop: Shop, args: dict[str, Any], said: str) -> None:
    """Two ways to say when are a mistake, and none of them is silently preferred."""
    with pytest.raises(ToolFailure, match=said) as raised:
        await shop.call("list_returns", **args)
    assert raised.value.code == "INVALID_ARGS"


def test_arguments_that_make_no_sense_are_refused_before_any_call() -> None:
    """Unknown periods, counts below one and years beyond the calendar are told all at once."""
    args = {"period": "last_fortnight", "last_days": 0, "since": "9999-12-31", "limit": 0}
    assert {place for place, _ in TOOLS["list_returns"].check_args(args)} == set(args)
