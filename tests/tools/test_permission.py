"""Tests of the first layer: switched off, or not for this role."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tools.calls import Scripted, a_call, code_of, tool_of
from tools.outcome import CallFailure, Success
from tools.permission import check_permission, permitted
from tools.spec import ToolSpec


@pytest.mark.parametrize(
    ("roles", "role", "may"),
    [
        ((), None, True),
        ((), "clerk", True),
        (("clerk",), "clerk", True),
        (("clerk",), "guest", False),
        (("clerk",), None, False),
    ],
)
async def test_a_tool_is_for_its_roles(roles: tuple[str, ...], role: str | None, may: bool) -> None:
    """A tool that names roles is theirs only; one that names none is everyone's."""
    tool = tool_of(lambda: 1, name="t", roles=roles)
    below = Scripted([Success(1)])
    outcome = await check_permission(replace(a_call(tool), role=role), below)
    assert permitted(tool.spec, role) is may
    assert code_of(outcome) == ("OK" if may else "NOT_PERMITTED")
    assert len(below.calls) == int(may)


async def test_a_refusal_names_the_roles() -> None:
    """The sentence says who may and who asked."""
    tool = tool_of(lambda: 1, name="t", roles=("clerk", "admin"))
    outcome = await check_permission(replace(a_call(tool), role="guest"), Scripted([Success(1)]))
    assert isinstance(outcome, CallFailure)
    assert outcome.failure.message == "t may be used by clerk, admin; this run has the role 'guest'"
    assert outcome.called is False


async def test_a_tool_that_is_switched_off_is_not_called() -> None:
    """TOOL_DISABLED comes before everything else."""
    tool = replace(tool_of(lambda: 1, name="t"), enabled=False)
    below = Scripted([Success(1)])
    assert code_of(await check_permission(a_call(tool), below)) == "TOOL_DISABLED"
    assert below.calls == []


async def test_a_tool_that_is_not_set_up_says_what_to_set() -> None:
    """A tool with something left to configure is never called, and the refusal is that sentence."""
    tool = tool_of(lambda: 1, name="t", to_configure="set X to a host")
    below = Scripted([Success(1)])
    outcome = await check_permission(a_call(tool), below)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.failure.message) == (
        "TOOL_DISABLED",
        "t cannot be called yet: set X to a host",
    )
    assert below.calls == []


def test_permission_needs_no_call() -> None:
    """A planner can ask which tools a role has."""
    assert permitted(ToolSpec(name="t", roles=("a",)), "a")
