"""The policy of this process, from a TOML file. What cannot be read, or says what is not known, lets nothing pass."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import ConfigurationError
from plans.policy import Floor, Policy, Rule, Terms, Trusted
from plans.policy_conditions import Condition
from plans.wording import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST_BYTES = 1_000_000
MOST_TOLD = 20
"""Errors that one message names."""
_WORDS = {
    "policy": [*Policy.model_fields],
    "asking": [*Terms.model_fields],
    "rules": [*Rule.model_fields],
    "floors": [*Floor.model_fields],
    "trusted": [*Trusted.model_fields],
    "args": [*Condition.model_fields],
}


class PolicyFile:
    """A policy in a file that is looked at again whenever a drive of a run begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[bytes, Policy] | None = None

    async def current(self) -> Policy:
        """What the file says now. Raises ConfigurationError."""
        return await asyncio.to_thread(self.read)

    def read(self) -> Policy:
        """The same, for who is on no event loop."""
        content = _content(self._path)
        if self._known is None or self._known[0] != content:
            self._known = (content, policy_of(content, self._path))
        return self._known[1]


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the policy {path} cannot be read: {error.strerror or error}. Nothing runs without it; mend it, or take "
            "the setting `policy` back"
        ) from None
    if len(content) > MOST_BYTES:
        raise ConfigurationError(f"the policy {path} has more than {MOST_BYTES} bytes")
    return content


def policy_of(content: bytes, path: Path) -> Policy:
    """The policy that a file says. Raises ConfigurationError that names everything that is wrong with it."""
    try:
        said = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"the policy {path} is no TOML: {error}") from None
    try:
        return Policy.model_validate(said)
    except ValidationError as error:
        found = error.errors(include_url=False)
        told = [_in_words(each, said) for each in found[:MOST_TOLD]]
        more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
        raise ConfigurationError(f"the policy {path} cannot be used: {'; '.join(told)}{more}") from None


def _in_words(error: ErrorDetails, said: dict[str, Any]) -> str:
    place = error["loc"]
    where = _where(place, said)
    if error["type"] == "extra_forbidden":
        known = _WORDS.get(_kind(place[:-1]), _WORDS["policy"])
        close = nearest(str(place[-1]), known)
        meant = f"did you mean {close}?" if close else f"there are {', '.join(known)}"
        return f"{where} is unknown; {meant}"
    words = error["msg"].removeprefix("Value error, ")
    return f"{where} {words[:1].lower()}{words[1:]}" if where else words


def _kind(place: tuple[int | str, ...]) -> str:
    if len(place) >= 4 and place[2] == "args":
        return "args"
    return str(place[0]) if place else "policy"


def _where(place: tuple[int | str, ...], said: dict[str, Any]) -> str:
    """The place as who has written the file finds it: rules by their names too."""
    if len(place) < 2 or not isinstance(place[1], int):
        return ".".join(map(str, place))
    kind, number, rest = str(place[0]), place[1], place[2:]
    listed = said.get(kind)
    entry = listed[number] if isinstance(listed, list) and number < len(listed) else None
    name = entry.get("name") if isinstance(entry, dict) else None
    called = f" {name!r}" if isinstance(name, str) else ""
    return f"{kind}[{number + 1}]{called}" + (f" {'.'.join(map(str, rest))}" if rest else "")
