"""Tools as they are now: with what was changed about them while running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodes.events import Event
from tools.settings import tool_now
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.session import Session
    from tools.registry import Registry


async def current_tool(session: Session, name: str) -> Tool | None:
    """The tool of this name as it is now; None where none is registered. Stored settings that are ignored because they
    make no sense for it are told once per drive."""
    tool = session.engine.registry.get(name)
    if tool is None:
        return None
    now = await tool_now(tool, session.engine.ports.settings)
    for setting, why in (now.ignored or {}).items():
        tell_once(session, f"a stored setting of tool {name} is ignored: {why} (surestep tools set {name} {setting}=)")
    return now.tool


async def current_tools(session: Session) -> RunTools:
    """All tools of the run as they are now."""
    found = {name: await current_tool(session, name) for name in session.engine.registry}
    return RunTools(session.engine.registry, {name: tool for name, tool in found.items() if tool is not None})


async def tools_of(engine: Engine) -> RunTools:
    """All tools as they are now, for whoever has no run."""
    now = {name: await tool_now(tool, engine.ports.settings) for name, tool in engine.registry.items()}
    return RunTools(engine.registry, {name: each.tool for name, each in now.items()})


def tell_once(session: Session, message: str) -> None:
    """Say it once per drive, as soon as somebody listens."""
    if message in session.told:
        return
    session.told.add(message)
    notice = Event(kind="notice", message=message)
    if session.writer is None:
        session.notices.append(notice)
    else:
        session.emit(notice)


class RunTools(dict[str, Tool]):
    """Tools as they are now, that can tell why one is not among them."""

    def __init__(self, registry: Registry, now: Mapping[str, Tool]) -> None:
        super().__init__(now)
        self._registry = registry

    def why_absent(self, name: str) -> str | None:
        """Why a tool of this name is not there, where that is known."""
        return self._registry.why_absent(name)
