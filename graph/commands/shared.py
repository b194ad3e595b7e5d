"""What every command needs: settings, an open agent, options read from text, and where output goes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from plans.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from graph.gateway import Agent
    from graph.settings import Settings

T = TypeVar("T")

settings_file: Path | None = None
"""The file that `--config` names."""


def load_settings(toolkits: Sequence[str]) -> Settings:
    """The settings of this call; toolkits on the command line come on top of the configured ones."""
    from graph.settings import Settings

    settings = Settings.load(settings_file)
    return settings.model_copy(update={"toolkits": tuple(dict.fromkeys((*settings.toolkits, *toolkits)))})


@asynccontextmanager
async def opened(toolkits: Sequence[str]) -> AsyncIterator[Agent]:
    """An agent for one command; what was left out of its tools is told."""
    from graph.agent import open_agent
    from graph.registries import registry_from

    settings = load_settings(toolkits)
    registry, notices = registry_from(settings)
    for notice in notices:
        say(notice)
    async with open_agent(registry.toolkits, settings=settings) as agent:
        yield agent


def waited(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run async work to its end. Ctrl-C and SIGTERM cancel it, and it is awaited while it puts things in order."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    return asyncio.run(work())


def say(message: str) -> None:
    """A line for the person, on stderr."""
    sys.stderr.write(f"{message}\n")


def print_json(value: Any) -> None:
    """The one object that goes to stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console; never wider than is good to read."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. Raises InvalidInput that shows the right form."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InvalidInput(f"{option} takes NAME=VALUE, not {text!r}")
        if name in found:
            raise InvalidInput(f"{option} {name} is given twice")
        found[name] = value
    return found


def values(given: Sequence[str], option: str) -> dict[str, Any]:
    """`NAME=VALUE` with each value read as JSON where it is JSON, else as text."""
    return {name: _value(text) for name, text in pairs(given, option).items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_text(name: str, what: str) -> str:
    """A file's text, or stdin's for `-`. Raises InvalidInput that says what is wrong with the file."""
    if name == "-":
        return sys.stdin.read()
    path = Path(name)
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} {path} is not UTF-8 text") from None
    except IsADirectoryError:
        raise InvalidInput(f"{what} {path} is a folder; name a file") from None
    except OSError as error:
        raise InvalidInput(f"{what} {path} cannot be read: {error.strerror}") from None
