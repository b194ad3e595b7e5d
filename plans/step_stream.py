"""The steps of a plan that is still being written, each as soon as its object is closed.

Strict, for what is begun early has to be what the whole plan says in the end: the text is a JSON object from its first
character, `steps` stands in it once and is a list of objects. With anything else the stream is lost, and says no more.
"""

from __future__ import annotations

import json

MAX_TEXT = 400_000
"""Characters after which a stream is lost: no plan that is worth beginning early is so long."""

_SPACE = frozenset(" \t\r\n")
_CLOSES = {"}": "{", "]": "["}
_STEPS = "{["
"""What is open between two steps."""


class StepStream:
    """Takes a text piece by piece. `lost` says that it is no plan, or not surely one."""

    def __init__(self) -> None:
        self.lost = False
        self._open = ""
        self._taken: list[str] | None = None
        self._in_string = self._escaped = False
        self._key: str | None = None
        self._awaits_key = self._seen_steps = self._over = False
        self._length = 0

    def feed(self, more: str) -> list[str]:
        """The texts of the steps that are closed by this piece."""
        found: list[str] = []
        self._length += len(more)
        self.lost = self.lost or self._length > MAX_TEXT
        for character in more:
            if self.lost:
                break
            if self._taken is not None:
                self._taken.append(character)
            if self._in_string:
                self._inside_string(character)
            elif character not in _SPACE and (closed := self._outside(character)) is not None:
                found.append(closed)
        return found

    def _inside_string(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            self._in_string = False
            if self._open == "{" and self._awaits_key:
                self._name("".join(self._taken or ()))

    def _name(self, text: str) -> None:
        """A name at the top of the object has been read."""
        self._taken, self._awaits_key = None, False
        try:
            self._key = json.loads(text)
        except ValueError:
            self.lost = True

    def _outside(self, character: str) -> str | None:
        """A character of the structure; the text of a step, if this closes one."""
        if not self._open:
            self._begin(character)
        elif character == '"':
            self._begin_string()
        elif character in "{[":
            self._enter(character)
        elif character in _CLOSES:
            return self._leave(character)
        elif character == "," and self._open == "{":
            self._awaits_key = True
        elif self._is_between_steps() and character != ",":
            self.lost = True
        return None

    def _begin(self, character: str) -> None:
        self.lost = self._over or character != "{"
        self._open, self._awaits_key = character, True

    def _begin_string(self) -> None:
        self._in_string = True
        if self._open == "{" and self._awaits_key:
            self._taken = ['"']
        self.lost = self._is_between_steps() or self._is_steps_value()

    def _enter(self, character: str) -> None:
        if self._is_steps_value():
            self.lost = self._seen_steps or character != "["
            self._seen_steps = True
        elif self._is_between_steps():
            self.lost = character != "{"
            self._taken = ["{"]
        self._open += character

    def _leave(self, character: str) -> str | None:
        self.lost = self._open[-1] != _CLOSES[character]
        was_in_step = self._key == "steps" and self._open.startswith(_STEPS) and len(self._open) == len(_STEPS) + 1
        self._open = self._open[:-1]
        self._over = not self._open
        if self._open == "{":
            self._key = None
        if not was_in_step or self._taken is None:
            return None
        step, self._taken = "".join(self._taken), None
        return step

    def _is_between_steps(self) -> bool:
        return self._key == "steps" and self._open == _STEPS

    def _is_steps_value(self) -> bool:
        return self._key == "steps" and self._open == "{" and not self._awaits_key
