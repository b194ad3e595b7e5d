"""Older journals and states are read step by step up to today's form; newer ones are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nodes.fold import fold
from nodes.versions import JOURNAL_UPGRADES, JOURNAL_VERSION, journal_version, readable_state, row_body
from plans.errors import VersionTooNew
from plans.plan import SCHEMA_VERSION
from plans.versions import UPGRADES


def test_every_version_has_its_upgrade() -> None:
    """No version that was ever written is left without a way to today's."""
    assert sorted(JOURNAL_UPGRADES) == list(range(1, JOURNAL_VERSION))
    assert sorted(UPGRADES) == list(range(1, SCHEMA_VERSION))


def test_a_row_goes_through_each_step_from_its_own_version() -> None:
    """Upgrades are applied in order, and those before the row's version are not."""

    def named(step: int) -> Any:
        def upgrade(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**body, "way": [*body.get("way", ()), f"{kind}{step}"]}

        return upgrade

    upgrades = {step: named(step) for step in (1, 2, 3)}
    assert row_body("plan", {}, 1, upgrades=upgrades, newest=4) == {"way": ["plan1", "plan2", "plan3"]}
    assert row_body("plan", {}, 3, upgrades=upgrades, newest=4) == {"way": ["plan3"]}
    assert row_body("plan", {}, 4, upgrades=upgrades, newest=4) == {}


def test_a_journal_without_a_version_is_of_the_first() -> None:
    """The first version did not say which it was."""
    assert journal_version({}) == 1


def test_a_newer_journal_is_refused() -> None:
    """What is told says which versions meet, and that nothing was changed."""
    with pytest.raises(VersionTooNew, match=rf"version {JOURNAL_VERSION + 1}.*up to {JOURNAL_VERSION}"):
        journal_version({"journal_version": JOURNAL_VERSION + 1})
    with pytest.raises(VersionTooNew, match="sublimated"):
        fold([("sublimated", None, 0, {})])


def test_state_goes_through_each_step_and_the_future_is_refused() -> None:
    """State without a version is fresh: it has today's form."""
    upgrades = {1: lambda state: {**state, "way": "one"}, 2: lambda state: {**state, "way": f"{state['way']} two"}}
    assert readable_state({"schema_version": 1}, upgrades=upgrades, newest=3)["way"] == "one two"
    assert readable_state({"goal": "x"}, upgrades=upgrades, newest=3) == {"goal": "x"}
    with pytest.raises(VersionTooNew, match="schema_version 4"):
        readable_state({"schema_version": 4}, upgrades=upgrades, newest=3)
