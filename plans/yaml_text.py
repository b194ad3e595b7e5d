"""Plans in YAML, for people: only what JSON knows has a type, everything else is the text that it looks like.

`yes`, `2024-01-01`, `010`, `1_000` and `12:30` are text, as they are for whoever wrote them. Keys stand once. Anchors
are read as long as they do not multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from plans.json_text import Note, whole_number
from plans.values import JSON, MAX_DEPTH, Path, dotted, too_deep

MAX_NODES = 500_000
"""Values in one file with every alias written out; the largest plan allowed has a tenth of that."""

_LOOKS_LIKE_A_PLAN = re.compile(r"^(?:goal|steps|schema_version|plan_id)[ \t]*:(?:[ \t]|$)", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>[\w-]*)[ \t]*$", re.MULTILINE)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: dict[str, JSON] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotYAML(ValueError):
    """Not YAML, or more of YAML than plans may use; the text says where and what."""


def looks_like_yaml(text: str) -> bool:
    """Whether some line begins a field of a plan, as in YAML's block style."""
    return _LOOKS_LIKE_A_PLAN.search(text) is not None


def begins_as_yaml(text: str) -> bool:
    """Whether such a line stands before any fence, brace or bracket."""
    line = _LOOKS_LIKE_A_PLAN.search(text)
    return line is not None and not any(mark in text[: line.start()] for mark in ("```", "~~~", "{", "["))


def read_yaml(text: str) -> tuple[JSON, list[Note]]:
    """The value of the only document in a text, and the keys that stand twice. Raises NotYAML."""
    builder = _Builder()
    try:
        text.encode()
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise NotYAML(f"{_place(error.problem_mark)}{error.problem or 'not YAML'}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise NotYAML(f"it holds characters that YAML does not allow: {' '.join(str(error).split())[:120]}") from None
    if too_deep(builder.document):
        raise NotYAML(f"with its aliases it is nested deeper than {MAX_DEPTH} levels")
    return builder.document, builder.notes


class _Open:
    """A list or mapping that is being read: its value, the key that waits for one, and its anchor."""

    __slots__ = ("anchor", "before", "key", "path", "value")

    def __init__(self, value: JSON, path: Path, anchor: str | None, before: int) -> None:
        self.value = value
        self.path = path
        self.anchor = anchor
        self.before = before
        self.key: str | None = None


class _Builder:
    """Turns the parser's events into one value, without recursion."""

    def __init__(self) -> None:
        self.document: JSON = None
        self.notes: list[Note] = []
        self._documents = 0
        self._nodes = 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[JSON, int]] = {}

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise NotYAML(f"{_place(event.start_mark)}a second document begins; a plan is one document")
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise NotYAML(f"{_place(event.start_mark)}*{event.anchor} stands inside or before what it names")
        value, size = self._anchors[event.anchor]
        if self._waits_for_key():
            raise NotYAML(f"{_place(event.start_mark)}an alias cannot be a key")
        self._count(size, event)
        self._put(value)

    def _scalar(self, event: Any) -> None:
        if event.tag not in (None, "!"):
            raise NotYAML(f"{_place(event.start_mark)}the tag {event.tag} is not read; write the value plainly")
        self._count(1, event)
        if self._waits_for_key():
            self._take_key(event.value)
            return
        value = event.value if event.style or event.tag == "!" else _typed(event.value)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value)

    def _open(self, event: Any) -> None:
        if event.tag not in (None, "!"):
            raise NotYAML(f"{_place(event.start_mark)}the tag {event.tag} is not read; write the value plainly")
        if self._waits_for_key():
            raise NotYAML(f"{_place(event.start_mark)}a key must be text")
        if len(self._stack) >= MAX_DEPTH:
            raise NotYAML(f"{_place(event.start_mark)}it is nested deeper than {MAX_DEPTH} levels")
        self._count(1, event)
        value: JSON = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Open(value, self._path_of_next(), event.anchor, self._nodes - 1))

    def _close(self) -> None:
        closed = self._stack.pop()
        if closed.anchor:
            self._anchors[closed.anchor] = (closed.value, self._nodes - closed.before)
        self._put(closed.value)

    def _put(self, value: JSON) -> None:
        if not self._stack:
            self.document = value
            return
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _take_key(self, key: str) -> None:
        parent = self._stack[-1]
        if key in parent.value:
            message = f"the key {key[:80]!r} stands twice in {dotted(parent.path) or 'the plan'}"
            self.notes.append(Note("DUPLICATE_KEY", (*parent.path, key), message))
        parent.key = key

    def _waits_for_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def _path_of_next(self) -> Path:
        if not self._stack:
            return ()
        parent = self._stack[-1]
        return (*parent.path, len(parent.value) if isinstance(parent.value, list) else str(parent.key))

    def _count(self, size: int, event: Any) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            raise NotYAML(
                f"{_place(event.start_mark)}it holds more than {MAX_NODES:,} values; are aliases multiplying?"
            )


def _typed(text: str) -> JSON:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return whole_number(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""


def fenced_blocks(text: str) -> Iterator[str]:
    """What stands between fences of three back-quotes."""
    begins: int | None = None
    for fence in _FENCE.finditer(text):
        if begins is None:
            begins = fence.end() + 1
        elif not fence["language"]:
            yield text[begins : fence.start()]
            begins = None
