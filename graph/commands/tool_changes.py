"""`tools set`, `enable`, `disable`, `promote` and the like: changing tools while runs go on, and who has."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from graph.commands.looking import show_table
from graph.commands.printing import print_json, show
from graph.commands.shared import load_settings, registry_for, user, waited
from graph.tool_settings import Changed, ToolSettings
from graph.tool_standing import declared_value
from plans.errors import InvalidInput
from plans.values import JSON

if TYPE_CHECKING:
    from tools.registry import Registry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What every command about tools is given: toolkits, whether one JSON object is wanted, and who asks."""

    toolkits: Sequence[str]
    as_json: bool = False
    by: str | None = None

    @property
    def who(self) -> str:
        """Who makes the change, for the record: as said, else the user of the operating system and the host."""
        return self.by or f"{user() or 'somebody'}@{socket.gethostname()}"


def set_tool(name: str, words: Sequence[str], asked: Asked) -> None:
    """Change settings given as `name=value`; an empty value takes a change back."""
    changes, unset = _parsed(words)
    _change(asked, lambda tools: tools.set(name, changes, unset=unset, by=asked.who))


def switch_tool(name: str, asked: Asked, *, on: bool) -> None:
    """Switch a tool on or off."""
    _change(asked, lambda tools: (tools.enable if on else tools.disable)(name, by=asked.who))


def promote_tool(name: str, after: int, asked: Asked) -> None:
    """Have a candidate answer for the tool that it shadows."""
    _change(asked, lambda tools: tools.promote(name, after=after, by=asked.who))


def demote_tool(name: str, asked: Asked) -> None:
    """Have the tool answer itself again."""
    _change(asked, lambda tools: tools.demote(name, by=asked.who))


def reset_tool(name: str, asked: Asked) -> None:
    """Take back whatever was changed about a tool."""
    _change(asked, lambda tools: tools.reset(name, by=asked.who))


def show_history(name: str | None, limit: int, asked: Asked) -> None:
    """What was changed, the newest first."""
    _, found = on_database(asked, lambda tools: tools.history(name, limit))
    changes = [(each, Changed.of(each.tool, each.before, each.after)) for each in found]
    if asked.as_json:
        told = [
            {"tool": each.tool, "at": each.changed_at.isoformat(), "by": each.changed_by, "changes": change.as_json()}
            for each, change in changes
        ]
        print_json({"changes": told})
        return
    rows = [
        (f"{each.changed_at.astimezone():%Y-%m-%d %H:%M:%S}", each.tool, each.changed_by, _told(change, {}))
        for each, change in changes
    ]
    show_table(("when", "tool", "who", "what"), rows, "nothing was ever changed")


def on_database(asked: Asked, work: Callable[[ToolSettings], Awaitable[T]]) -> tuple[Registry, T]:
    """Do this with the settings of the tools on the database, which is started or made if need be."""
    settings = load_settings(asked.toolkits)
    registry = registry_for(settings)

    async def done() -> T:
        from checkpoints.database import open_database

        size, prepare = min(2, settings.pool_size), settings.prepare_threshold
        async with open_database(
            settings.database_url, settings.folder, pool_size=size, prepare_threshold=prepare
        ) as database:
            return await work(ToolSettings(registry, database))

    return registry, waited(done)


def _change(asked: Asked, work: Callable[[ToolSettings], Awaitable[Changed]]) -> None:
    registry, changed = on_database(asked, work)
    tool = registry.declared.get(changed.tool)
    declared = {name: declared_value(tool, name) for name in changed.names} if tool else {}
    if asked.as_json:
        told = {"tool": changed.tool, "by": asked.who, "changes": changed.as_json()}
        again = {"forgiven": changed.forgiven, "closed": changed.closed}
        print_json({**told, **{name: value for name, value in again.items() if value}})
        return
    if changed.names:
        show(f"{changed.tool}: {_told(changed, declared)}")
    if changed.closed:
        show(f"{changed.tool}: its breaker was open and is closed")
    if changed.forgiven:
        show(f"{changed.tool}: failed calls that may be made again at once: {changed.forgiven}")
    if not (changed.names or changed.closed or changed.forgiven):
        show(f"{changed.tool} is so already: nothing was changed")


def _told(changed: Changed, declared: Mapping[str, JSON]) -> str:
    def side(name: str, values: Mapping[str, JSON]) -> str:
        if name in values:
            return json.dumps(values[name], ensure_ascii=False)
        known = name in declared and not name.startswith("answered")
        return f"{json.dumps(declared[name])} as declared" if known else "as declared"

    return ", ".join(f"{name} {side(name, changed.before)} → {side(name, changed.after)}" for name in changed.names)


def _parsed(words: Sequence[str]) -> tuple[dict[str, JSON], list[str]]:
    """Changes and what to take back. A value is JSON, or text where it is none. Raises InvalidInput for every word that
    is no change."""
    changes: dict[str, JSON] = {}
    unset: list[str] = []
    wrong = [word for word in words if "=" not in word or not word.partition("=")[0]]
    names = [word.partition("=")[0] for word in words if word not in wrong]
    wrong += [f"{name} (twice)" for name in dict.fromkeys(names) if names.count(name) > 1]
    if wrong or not words:
        said = f"not {', '.join(wrong)}" if wrong else "nothing was given"
        raise InvalidInput(f"a change is SETTING=VALUE, as in timeout_s=3, or SETTING= to take it back; {said}")
    for word in words:
        name, _, text = word.partition("=")
        if not text:
            unset.append(name)
        else:
            changes[name] = _value(text)
    return changes, unset


def _value(text: str) -> JSON:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
