"""What a database says, if there is one to look at: looking makes none and migrates none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from graph.commands.shared import waited
from plans.errors import DatabaseUnavailable, StorageUnavailable, VersionTooNew

if TYPE_CHECKING:
    from checkpoints.database import Database
    from checkpoints.shadow_counts import NotedDifference
    from graph.settings import Settings
    from graph.tool_standing import ToolStanding
    from tools.registry import Registry


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Look:
    """How each tool stands, by name, and the last differences of a candidate that was asked for; `why` says why that is
    not known (None: it is)."""

    standing: Mapping[str, ToolStanding] = field(default_factory=dict)
    differences: Mapping[str, Sequence[NotedDifference]] = field(default_factory=dict)
    why: str | None = None


def look_at(settings: Settings, registry: Registry, name: str | None = None) -> Look:
    """How the tools stand on the database, if one can be reached within two seconds; in full the one of this name."""

    async def look(database: Database) -> Look:
        from graph.tool_settings import ToolSettings

        tools = ToolSettings(registry, database)
        is_shadow = name is not None and registry.declared[name].spec.shadow_of is not None
        differences = {name: await tools.differences(name)} if name is not None and is_shadow else {}
        return Look(await tools.standing(), differences)

    found, why = glanced(settings, look)
    return found or Look(why=why)


def glanced(settings: Settings, look: Callable[[Database], Awaitable[Found]]) -> tuple[Found | None, str | None]:
    """What was found on the database of these settings, or why nothing is known."""

    async def work() -> Found:
        from checkpoints.glance import glance

        async with glance(settings.database_url, settings.folder) as database:
            return await look(database)

    try:
        return waited(work), None
    except (DatabaseUnavailable, StorageUnavailable, VersionTooNew) as error:
        return None, str(error)
