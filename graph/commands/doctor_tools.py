"""What `surestep doctor` tells about tools: switched off, left alone, or with settings that say nothing any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graph.commands.shared import surestep

if TYPE_CHECKING:
    from graph.settings import Settings
    from graph.tool_standing import ToolStanding
    from tools.settings import Flat


async def told_of_tools(settings: Settings, toolkits: Sequence[str]) -> list[str]:
    """One sentence for each thing to know. Raises ConfigurationError where tools or database cannot be looked at."""
    import asyncio

    from checkpoints.glance import glance
    from graph.registries import registry_from
    from graph.tool_settings import ToolSettings

    registry, _ = await asyncio.to_thread(registry_from, settings)
    async with glance(settings.database_url, settings.folder) as database:
        tools = ToolSettings(registry, database)
        standing, strangers = await tools.standing(), await tools.strangers()
    return [*_of_declared(standing, toolkits), *_of_strangers(strangers, toolkits)]


def _of_declared(standing: Mapping[str, ToolStanding], toolkits: Sequence[str]) -> Iterator[str]:
    for name, each in standing.items():
        if not each.now.tool.enabled or each.breaker.status != "closed" or each.lost_answerer:
            yield f"{name}: {each.state}"
        for setting, why in (each.now.ignored or {}).items():
            command = surestep("tools", "set", name, f"{setting}=", toolkits=toolkits)
            yield f"a stored setting of {name} is ignored: {why} ({command})"


def _of_strangers(strangers: Mapping[str, Flat], toolkits: Sequence[str]) -> Iterator[str]:
    for name, flat in strangers.items():
        command = surestep("tools", "reset", name, toolkits=toolkits)
        yield f"settings are stored for {name}, which is not registered here: {', '.join(flat)} ({command})"
