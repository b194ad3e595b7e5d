"""Stored plans of every version are read: older ones step by step, newer ones not at all."""

from __future__ import annotations

from typing import Any

import pytest

from plans.errors import VersionTooNew
from plans.plan import SCHEMA_VERSION
from plans.versions import UPGRADES, Upgrade, upgraded


def renamed(plan: dict[str, Any]) -> dict[str, Any]:
    """Version 2 called the goal by its name."""
    return {**{key: value for key, value in plan.items() if key != "aim"}, "goal": plan["aim"]}


def marked(plan: dict[str, Any]) -> dict[str, Any]:
    """Version 3 says where the goal came from; it needs what version 2 has."""
    return {**plan, "about": plan["goal"].upper()}


STEPS: dict[int, Upgrade] = {1: renamed, 2: marked}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"schema_version": 1, "aim": "g"}, {"schema_version": 3, "goal": "g", "about": "G"}),
        ({"schema_version": 2, "goal": "g"}, {"schema_version": 3, "goal": "g", "about": "G"}),
        ({"schema_version": 3, "goal": "g"}, {"schema_version": 3, "goal": "g"}),
        ({"goal": "g"}, {"schema_version": 3, "goal": "g"}),
    ],
)
def test_an_old_plan_goes_through_every_step_to_the_newest_form(
    stored: dict[str, Any], expected: dict[str, Any]
) -> None:
    """One function per version, in order; a plan that names no version has the newest form."""
    before = dict(stored)
    assert upgraded(stored, upgrades=STEPS, newest=3) == expected
    assert stored == before


def test_a_newer_plan_is_refused_with_what_to_do() -> None:
    """It may mean what this code does not know: the message names both versions and the way out."""
    with pytest.raises(VersionTooNew, match=r"schema_version 4.*reads up to 3.*Upgrade Surestep"):
        upgraded({"schema_version": 4}, upgrades=STEPS, newest=3)


@pytest.mark.parametrize("version", [0, -1, "1", 1.5, None, True, [1]])
def test_a_version_that_never_was_is_refused(version: object) -> None:
    """What no Surestep wrote is not guessed at."""
    with pytest.raises(ValueError, match=r"from 1 to 3|Expected 1 to 3"):
        upgraded({"schema_version": version}, upgrades=STEPS, newest=3)


def test_there_is_a_step_from_every_version_that_was() -> None:
    """Whoever raises SCHEMA_VERSION has to say how older plans become new ones."""
    assert set(UPGRADES) == set(range(1, SCHEMA_VERSION))
    assert upgraded({"goal": "g"}) == {"goal": "g", "schema_version": SCHEMA_VERSION}
