"""What every command needs: settings, an open agent, and the words that lead on from it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from graph.commands.printing import console, print_json, say
from graph.commands.stopping import waited
from graph.principal import os_user as user
from plans.errors import ConfigurationError

if TYPE_CHECKING:
    from graph.gateway import Agent
    from graph.settings import Settings
    from tools.registry import Registry

__all__ = [
    "OVER",
    "console",
    "load_settings",
    "opened",
    "print_json",
    "registry_for",
    "say",
    "surestep",
    "user",
    "waited",
]

OVER = frozenset({"done", "failed", "cancelled"})
"""How a run stands that nothing goes on with."""
settings_file: Path | None = None
"""The file that `--config` names."""


def load_settings(toolkits: Sequence[str]) -> Settings:
    """The settings of this call; toolkits on the command line come on top of the configured ones."""
    from graph.settings import Settings

    try:
        Path.cwd()
    except FileNotFoundError:
        raise ConfigurationError("the current folder has been deleted; change into one that exists") from None
    settings = Settings.load(settings_file)
    return settings.model_copy(update={"toolkits": tuple(dict.fromkeys((*settings.toolkits, *toolkits)))})


def has_planner() -> bool:
    """Whether there is a model that can make something of words."""
    return bool(load_settings([]).model)


def registry_for(settings: Settings) -> Registry:
    """The tools of these settings; what was left out of them is told."""
    from graph.registries import registry_from

    registry, notices = registry_from(settings)
    for notice in notices:
        say(notice)
    return registry


def opened(toolkits: Sequence[str], *, calls: bool = True, eager: bool = False) -> AbstractAsyncContextManager[Agent]:
    """An agent for one command; one that calls no tool does without those of servers. Settings and toolkits are read
    here and now: call it before async work begins, for imports of some seconds would hold up whatever else the event
    loop is to do, a Ctrl-C among it."""
    settings = load_settings(toolkits)
    from graph.agent import open_agent
    from graph.setting_names import TABLES

    if eager:
        settings = settings.model_copy(update={"eager": True})
    if not calls:
        settings = settings.model_copy(update={name: {} for name in TABLES})
    return open_agent(registry_for(settings), settings=settings)


def surestep(*words: str, toolkits: Sequence[str] = ()) -> str:
    """A command line that goes on from this one: with the same settings and toolkits, ready to be pasted."""
    config = ["--config", str(settings_file)] if settings_file else []
    more = [word for toolkit in toolkits for word in ("--toolkit", toolkit)]
    return shlex.join(["surestep", *config, *words, *more])
