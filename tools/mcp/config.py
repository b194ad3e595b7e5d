"""How an MCP server is reached and what of it may be used, as `mcp_toolkit` and the settings file say it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from tools.http.messages import is_header
from tools.policies import Policies
from tools.spec import Seconds

Policy = Mapping[str, Any]

CALL_S = 15.0
"""How long a call of a server's tool may take unless configuration says otherwise: the customary time of an external
API."""
MCP_ONLY = frozenset({"errors_are_certain"})
"""What can be said of a server's tool beside the fields of a spec."""


class Server(Policies):
    """One MCP server: a `command` that is started here and spoken to by its standard streams, or a `url` (streamable
    HTTP).

    `env` comes on top of the little that a child is given (PATH, HOME and the like); nothing of ours is passed on.
    `only` and `without` choose among the tools by the names that the server gives them. `prefix` begins their names
    here (None: the toolkit's name and `_`). `tools` says by the server's name what a ToolSpec declares, `every` the
    same for all of them; `name`, `description` and `version` may be said there too. The server's annotations can only
    make a tool stricter, unless `trust_annotations`; `ignore_annotations` reads none. `errors_are_certain`, said like a
    field of a spec, promises that a tool which reports an error has not acted. All times are seconds.
    """

    beside = MCP_ONLY

    command: tuple[str, ...] | None = Field(None, min_length=1)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str | None = Field(None, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    prefix: str | None = Field(None, pattern=r"^[A-Za-z0-9_-]{0,40}$")
    trust_annotations: bool = False
    ignore_annotations: bool = False
    start_timeout_s: Seconds = 20.0

    @field_validator("command", mode="before")
    @classmethod
    def _in_words(cls, value: Any) -> Any:
        """A command may be one text, split as a shell does; no shell runs it."""
        return tuple(shlex.split(value)) if isinstance(value, str) else value

    @field_validator("headers")
    @classmethod
    def _sendable(cls, value: dict[str, str]) -> dict[str, str]:
        """What cannot stand in a header is refused here, where the message does not hold it."""
        for name, said in value.items():
            if not is_header(name):
                raise ValueError(f"{name!r} is no name of a header that can be set")
            if not said.isascii() or not said.isprintable() or said != said.strip():
                raise ValueError(f"the header {name} holds what a header cannot hold")
        return value

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server has either a command or a url")
        if self.url is not None and (self.env or self.cwd):
            raise ValueError("env and cwd are for a server with a command; one with a url has headers")
        if self.command is not None and self.headers:
            raise ValueError("headers are for a server with a url; one with a command has env")
        if self.url is not None and not _reachable(self.url):
            raise ValueError("the url of an MCP server begins with http:// or https:// and names a host")
        if self.trust_annotations and self.ignore_annotations:
            raise ValueError("trust_annotations and ignore_annotations contradict each other")
        return self

    @property
    def shown(self) -> str:
        """How to name the server to people: the program, or the URL without what may be secret in it."""
        if self.command is not None:
            return Path(self.command[0]).name
        parts = urlsplit(self.url or "")
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    @property
    def secrets(self) -> list[str]:
        """Texts that must not be repeated, the longest first."""
        parts = urlsplit(self.url or "")
        words = [word for each in self.headers.values() for word in each.split()]
        found = [*self.env.values(), *self.headers.values(), *words]
        found += [parts.query, parts.password or "", parts.username or ""]
        return sorted({each for each in found if len(each) >= _LEAST_SECRET}, key=len, reverse=True)


_LEAST_SECRET = 6
"""Shorter texts are left where they are: they are no secrets, and would blank out half of a message."""


def _reachable(url: str) -> bool:
    """Whether it is a URL that can be used. ValueError for one with a port or an address that is none."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
