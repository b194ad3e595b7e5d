"""Credentials out of what others write into checkpoints: inputs as clients have sent them, answers, errors.

What nodes write has none. But LangGraph saves an input before any node has seen it, and an exception after the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from plans.credentials import replaced_in
from plans.placeholders import hider, placeholder

FROM_OUTSIDE = frozenset(
    {"goal", "inputs", "plan", "messages", "__start__", "__error__", "__resume__", "__interrupt__"}
)
"""Channels in which what others have written may stand."""


@dataclass(frozen=True)
class Hiding:
    """Puts the placeholders there that the run itself would have put: a run that is begun anew with what was saved is
    the same request. With another key than the run's they open nothing."""

    key: bytes = field(repr=False)

    def __call__(self, channel: str, value: Any) -> Any:
        """What may be saved of a channel's value. The value itself where nothing has to go."""
        return self._hidden(value) if channel in FROM_OUTSIDE else value

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, BaseException):
            return self._json(repr(value))
        if isinstance(value, BaseMessage):
            content = self._json(value.content)
            return value if content is value.content else value.model_copy(update={"content": content})
        if isinstance(value, Mapping):
            return self._json({name: self._field(name, item) for name, item in value.items()})
        return [self._hidden(item) for item in value] if isinstance(value, list | tuple) else self._json(value)

    def _field(self, name: str, item: Any) -> Any:
        if name != "inputs" or not isinstance(item, Mapping):
            return self._hidden(item)
        return {each: self._input(each, value) for each, value in item.items()}

    def _input(self, name: str, value: Any) -> Any:
        """An input of which a client says that it is a secret goes whatever it looks like."""
        secret = value.get("secret") if isinstance(value, Mapping) and set(value) == {"secret"} else None
        shown = {"secret": placeholder(f"inputs.{name}", secret, self.key)} if isinstance(secret, str) else value
        return self._json(shown)

    def _json(self, value: Any) -> Any:
        return replaced_in(value, hider(self.key))
