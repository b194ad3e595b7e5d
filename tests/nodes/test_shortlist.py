"""Which tools are offered in the place of a failed step."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.model_settings import estimated
from nodes.prompts import quoted
from nodes.shortlist import LINES_TOKENS, MOST_SHOWN, SHOWN_TOKENS, Shortlist, shortlist
from plans.plan import StepDraft
from tools.orders.toolkit import orders
from tools.registry import Registry, Toolkit
from tools.tabular.toolkit import tabular
from tools.tool import Tool

TOOLS = Registry.of(orders, tabular)


def listed(tool: str, *fields: str, without: str = "") -> Shortlist:
    """Who may stand in for a step that calls this tool."""
    offered = [each for name, each in TOOLS.items() if name != without]
    return shortlist(StepDraft(id="s1", tool=tool), TOOLS.get(tool), fields, offered)


def shown(found: Shortlist) -> list[str]:
    return [tool.name for tool in found.shown]


def test_its_own_tool_comes_first_then_its_declared_alternative() -> None:
    """The arguments may be what was wrong; else what the tool itself declares is nearest."""
    assert shown(listed("get_refund_status_gateway"))[:2] == ["get_refund_status_gateway", "get_refund_status_cached"]


def test_who_declares_a_tool_as_its_alternative_may_stand_in_for_it() -> None:
    """The relation holds in both directions, for reads."""
    assert shown(listed("get_refund_status_cached"))[1] == "get_refund_status_gateway"


def test_a_tool_that_is_left_alone_now_is_not_offered() -> None:
    """One whose breaker is open is not among the offered; its alternative is then the first."""
    found = listed("get_refund_status_gateway", without="get_refund_status_gateway")
    assert shown(found)[0] == "get_refund_status_cached"
    assert "get_refund_status_gateway" not in found.names


def test_who_gives_what_is_read_comes_before_the_rest_of_the_toolkit() -> None:
    """`delay_cause` and `carrier` are read: of the other tools only the shipment has both."""
    assert shown(listed("get_order", "delay_cause", "carrier"))[:2] == ["get_order", "get_shipment"]


def test_a_read_is_replaced_by_reads_alone() -> None:
    """No tool with an effect is named for a lookup, with its outline or without."""
    assert all(TOOLS[name].effect == "read" for name in listed("get_order").names)
    assert listed("get_order").names == {name for name, tool in TOOLS.items() if tool.effect == "read"}


@pytest.mark.parametrize("tool", ["issue_refund", "send_reply"])
def test_an_effect_is_replaced_by_itself_or_by_reads(tool: str) -> None:
    """Its own tool with other arguments, its declared alternatives, or a look: no other effect."""
    effects = {name for name in listed(tool).names if TOOLS[name].effect != "read"}
    assert effects == {tool}


def test_an_unknown_tool_and_a_judgement_are_replaced_by_reads() -> None:
    """What a tool that is gone would have done is not known, so that nothing with an effect stands in for it."""
    for failed in (StepDraft(id="s1", tool="gone"), StepDraft(id="s1", action="llm", instruction="judge")):
        found = shortlist(failed, None, (), TOOLS.values())
        assert all(TOOLS[name].effect == "read" for name in found.names)


def test_the_order_of_the_tools_makes_no_difference() -> None:
    """The same tools make the same list, so that a repair that is asked for again asks the same."""
    failed = StepDraft(id="s1", tool="get_order")
    backwards = shortlist(failed, TOOLS["get_order"], (), reversed(list(TOOLS.values())))
    assert shown(backwards) == shown(listed("get_order"))
    assert backwards.lines == listed("get_order").lines


def test_however_many_tools_there_are_the_list_stays_short() -> None:
    """A few outlines, then lines, then names, then how many are not listed; any of them can still be asked for."""
    many = many_tools(300)
    found = shortlist(StepDraft(id="s1", tool="tool_7"), many["tool_7"], (), many.values())
    assert shown(found)[0] == "tool_7"
    assert len(found.shown) <= MOST_SHOWN
    assert sum(len(str(line)) for line in found.lines) < LINES_TOKENS * 4 + 60
    assert "more, which are not listed" in str(found.lines[-1])
    assert found.closer("tool_299") is not None
    assert found.closer("tool_7") is None


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_contracts_keep_within_their_budget(tool: str) -> None:
    """All that are shown together, unless one alone is longer."""
    found = listed(tool)
    assert len(found.shown) == 1 or estimated(quoted(found.outlines())) <= SHOWN_TOKENS


def many_tools(count: int) -> dict[str, Tool]:
    kit = Toolkit("many")
    schema: dict[str, Any] = {"type": "object"}
    for number in range(count):
        kit.add(lambda: 1, name=f"tool_{number}", description="Looks. Deeply.", effect="read", args_schema=schema)
    return dict(kit.tools)
