"""Stored plans of older versions become plans of this one: one function per step, newer ones are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from plans.errors import VersionTooNew
from plans.plan import SCHEMA_VERSION
from plans.values import JSON

Upgrade = Callable[[dict[str, JSON]], dict[str, JSON]]

UPGRADES: Mapping[int, Upgrade] = MappingProxyType({})
"""From each version to the next: `UPGRADES[1]` makes a plan of version 1 one of version 2. Pure, and never deleted:
plans of every version that was ever released can be in somebody's archive."""


def upgraded(
    stored: Mapping[str, JSON], *, upgrades: Mapping[int, Upgrade] = UPGRADES, newest: int = SCHEMA_VERSION
) -> dict[str, JSON]:
    """A stored plan in the form of the newest version; without a `schema_version` it has that form.

    Raises VersionTooNew for one that this code does not know yet, ValueError for a version that never was.
    """
    plan = dict(stored)
    version = plan.get("schema_version", newest)
    if isinstance(version, bool) or not isinstance(version, int):
        raise ValueError(f"is {version!r}; expected a whole number from 1 to {newest}"[:200])  # noqa: TRY004  # a fault
    if version > newest:
        raise VersionTooNew(
            f"the plan was stored by a newer Surestep: it has schema_version {version}, this one reads up to {newest}. "
            "Upgrade Surestep, or write the plan again"
        )
    while version < newest:
        if version not in upgrades:
            raise ValueError(f"is {version}; no Surestep ever wrote that. Expected 1 to {newest}")
        plan = upgrades[version](plan)
        version += 1
    return {**plan, "schema_version": newest}
