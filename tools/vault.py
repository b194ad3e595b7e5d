"""Secrets of runs: out of everything that is stored, shown or sent, and put back where a tool is called.

A placeholder (`plans/placeholders.py`) stands for a secret everywhere else. It is opened in two places only: in an
argument that its tool keeps secret, and, for one that a toolkit's own tool has given (a session id, the token of a
next page), in calls of that toolkit. What a call gives is looked through before anybody sees it: the secrets that it
was given and has repeated, those of the settings, and what looks like a credential.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from plans.credentials import replaced_in
from plans.failure import ToolFailure
from plans.placeholders import Kept, hider, name_of, placeholder, placeholders_in, places_of, put_back
from plans.texts import mapped
from plans.values import JSON, Path
from tools.redaction import known_blanked, value_without

if TYPE_CHECKING:
    from tools.tool import Tool

NAMED = "secrets."
"""What the names of secrets of the settings begin with; `${secrets.crm_password}` stands for one in a plan."""
OF_INPUTS = "inputs."
"""The same of secrets among a run's inputs."""
BY_NAME = (f"[sealed:{NAMED}", f"[sealed:{OF_INPUTS}")
"""How placeholders begin that somebody has named on purpose: they stand in secret arguments, or the step is refused."""
OF_A_PERSON = ""
"""Where a secret comes from that a person has given, in a goal, an input or an answer."""
LEAST_ECHO = 6
"""Shorter secrets are looked for in what a call gives only as whole texts: as parts they would be found everywhere."""
LARGE = 200_000
"""Characters of JSON from which on a result is looked through in a thread."""


class SecretStore(Protocol):
    """The secrets of runs, by placeholder, unreadable without the key."""

    async def keep(self, run_id: str, kept: Mapping[str, Kept]) -> None:
        """Store them for a run; durable when this returns. What is stored already stays."""
        ...

    async def read(self, run_id: str, names: Sequence[str]) -> Mapping[str, Kept]:
        """Those of these placeholders that the run has a secret for."""
        ...

    async def share(self, run_id: str, names: Sequence[str]) -> None:
        """Let a run have those secrets too, which other runs have stored: it was given a result of theirs."""
        ...

    async def forget(self, run_id: str) -> None:
        """Delete what was stored for a run that never came to be."""
        ...


class NamedSecret(BaseModel):
    """A secret of the settings, and the tools that may be given it by name (`crm_*`); none named: any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: SecretStr = Field(min_length=1)
    tools: tuple[str, ...] = ()

    def is_for(self, tool: str) -> bool:
        """Whether this tool may be given it."""
        return not self.tools or any(fnmatchcase(tool, each) for each in self.tools)


def _as_secrets(said: Any) -> Any:
    """Secrets as people write them: a text, or a table with `value` and the `tools` that may be given it."""
    if not isinstance(said, Mapping):
        return said
    return {name: {"value": each} if isinstance(each, str | SecretStr) else each for name, each in said.items()}


SecretName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]
NamedSecrets = Annotated[dict[SecretName, NamedSecret], BeforeValidator(_as_secrets)]
"""Secrets of the settings by name."""


class Opened(NamedTuple):
    """Arguments as a tool gets them, and the secrets that were put into them, by placeholder."""

    args: Mapping[str, JSON]
    secrets: Mapping[str, str]


@dataclass(frozen=True)
class Vault:
    """The secrets that runs of one process may use. `key` is for hashes alone; how secrets are kept is the store's."""

    key: bytes = field(repr=False)
    store: SecretStore
    named: Mapping[str, NamedSecret] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """The secrets of the settings as plans see them: name and placeholder."""
        return {name: self._named(name) for name in self.named}

    def _named(self, name: str) -> str:
        return placeholder(NAMED + name, self.named[name].value.get_secret_value(), self.key)

    def hide(self, value: JSON, origin: str = OF_A_PERSON) -> tuple[JSON, dict[str, Kept]]:
        """A value with placeholders in the place of what looks like a credential, and what they stand for."""
        kept: dict[str, Kept] = {}
        return replaced_in(value, hider(self.key, kept, origin)), kept

    def hide_as(self, name: str, secret: str) -> tuple[str, dict[str, Kept]]:
        """The placeholder of a secret that is known to be one, or itself where it is one already."""
        if name_of(secret) is not None:
            return secret, {}
        shown = placeholder(name, secret, self.key)
        return shown, {shown: Kept(secret)}

    async def seal(self, run_id: str, value: JSON) -> JSON:
        """The same of what a person has given, with what was found stored for the run before this returns."""
        hidden, kept = self.hide(value)
        if kept:
            await self.store.keep(run_id, kept)
        return hidden

    async def open(self, run_id: str, tool: Tool, args: Mapping[str, JSON]) -> Opened:
        """The arguments with secrets in the places that may have them. Raises ToolFailure NOT_PERMITTED for one that is
        not for this tool, and PRECONDITION_FAILED for one that is not there any more."""
        wanted = placeholders_in(dict(args))
        if not wanted:
            return Opened(args, {})
        secret_args = tool.secret_args
        inside = placeholders_in({name: item for name, item in args.items() if name in secret_args})
        kept = await self._kept(run_id, tool, wanted)
        if missing := sorted(inside - kept.keys()):
            raise ToolFailure("PRECONDITION_FAILED", f"{tool.name} needs {missing[0]}, which is not there any more")
        home = {shown: each.secret for shown, each in kept.items() if each.origin and each.origin == tool.toolkit}
        there = {shown: kept[shown].secret for shown in inside}
        both = {**home, **there}
        opened = {name: put_back(item, both if name in secret_args else home) for name, item in args.items()}
        return Opened(opened, both)

    async def _kept(self, run_id: str, tool: Tool, wanted: set[str]) -> dict[str, Kept]:
        kept, others = dict[str, Kept](), list[str]()
        for shown in sorted(wanted):
            name = (name_of(shown) or "").removeprefix(NAMED)
            if not (name_of(shown) or "").startswith(NAMED):
                others.append(shown)
            elif name in self.named and self._named(name) == shown:
                if not self.named[name].is_for(tool.name):
                    raise ToolFailure("NOT_PERMITTED", f"the secret {name!r} is not for {tool.name}")
                kept[shown] = Kept(self.named[name].value.get_secret_value())
        return kept | (dict(await self.store.read(run_id, others)) if others else {})

    async def clean(self, run_id: str, value: JSON, tool: Tool, opened: Opened) -> JSON:
        """A result without secrets: those that the call was given and has repeated, known ones, and what looks like
        one, which is kept for the run."""
        echoes = _echoes(opened.secrets)
        cleaned, kept = await _aside(value, lambda found: self.hide(_without(found, echoes), tool.toolkit))
        if kept:
            await self.store.keep(run_id, kept)
        return cleaned

    def clean_text(self, text: str, opened: Opened) -> str:
        """A text of a failure without the secrets that the call was given, and without known ones."""
        return str(_without(text, _echoes(opened.secrets)))


async def _aside(value: JSON, work: Callable[[JSON], Any]) -> Any:
    """Done here, or in a thread where the value is large: a loop that waits for it would wait with all its runs."""
    from tools.cache import fits

    return work(value) if fits(value, LARGE) else await asyncio.to_thread(work, value)


def _echoes(secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    """The secrets in every way in which they are usually written, the longest first, each with its placeholder."""
    found: dict[str, str] = {}
    for shown, secret in secrets.items():
        in_json = [json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
        for each in (secret, *in_json, quote(secret), quote(secret, safe="")):
            found.setdefault(each, shown)
    return sorted(found.items(), key=lambda each: -len(each[0]))


def _without(value: Any, echoes: Sequence[tuple[str, str]]) -> Any:
    for secret, shown in echoes:
        value = _whole(value, secret, shown) if len(secret) < LEAST_ECHO else value_without(value, [secret], shown)
    return known_blanked(value)


def _whole(value: Any, secret: str, shown: str) -> Any:
    """A short secret in the texts that are nothing else."""
    return mapped(value, lambda text: shown if text == secret else text)


def misplaced(args: Mapping[str, JSON], secret_args: frozenset[str]) -> list[str]:
    """Arguments in which a secret stands by its name, alone or within a longer text, and that their tool does not keep
    secret."""
    others = {name: item for name, item in args.items() if name not in secret_args}
    return [name for name, item in others.items() if any(map(is_by_name, placeholders_in(item)))]


def is_by_name(shown: str) -> bool:
    """Whether a placeholder stands for a secret that somebody has named on purpose."""
    return shown.startswith(BY_NAME)


def hidden_in(tool: Tool, args: Mapping[str, JSON]) -> list[Path]:
    """Where secrets stand that the tool will be given: what is there is known in the call alone."""
    return [path for path in places_of(dict(args)) if path[0] in tool.secret_args]
