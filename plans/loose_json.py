"""JSON as models write it: mistakes of syntax that leave one reading only are read, everything else is refused.

Read: comments, trailing commas, single quotes, bare keys, Python's True, False and None, line breaks inside strings,
full-width colons and commas. Strings are taken character by character as they stand. Nothing is ever added: what ends
too early is Cut, what fits no rule is Broken.
"""

from __future__ import annotations

import json
import math
import re

from plans.json_text import Note, whole_number
from plans.values import JSON, MAX_DEPTH, Path, dotted

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|#[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z))*")
_ELISION = re.compile(r"(?://|#|/\*)[\s*-]*(?:\.\.\.|…)")
_DOUBLE = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)(?:(")|\Z)', re.DOTALL)
_SINGLE = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)(?:(')|\Z)", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_SINGLE_TO_DOUBLE = re.compile(r'\\(.)|"', re.DOTALL)
_FENCE = "```"
_COLONS = ":："
_ODD_QUOTES = "“”„‟‘’«»「『＂`"
_COMMAS = ",，"
_WORDS: dict[str, JSON] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Broken(ValueError):
    """The text fits no rule at `at`."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


class Cut(ValueError):
    """The text, or the fenced block, ends at `at`, before its value does."""

    def __init__(self, at: int) -> None:
        super().__init__("the text ends before its value does")
        self.at = at


class LooseParser:
    """Reads one value from a place in a text; `within` is where it stands in a plan. Afterwards `at` is behind it,
    `notes` says what is wrong inside it, and `keys` are the keys of its outermost objects, also when reading stopped
    halfway ("" for one in odd quotes)."""

    def __init__(self, text: str, at: int = 0, within: Path = ()) -> None:
        self.text = text
        self.within = within
        self.at = at
        self.notes: list[Note] = []
        self.keys: set[str] = set()

    def read(self) -> JSON:
        """The value. Raises Broken or Cut."""
        return self._value((), 0)

    def _value(self, path: Path, depth: int) -> JSON:
        match self._next():
            case "{":
                return self._object(path, self._deeper(depth))
            case "[":
                return self._list(path, self._deeper(depth))
            case '"' | "'":
                return self._string()
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return float(number[0]) if number[1] or number[2] else whole_number(number[0])
        return self._word(path)

    def _deeper(self, depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise Broken(self.at, f"it is nested deeper than {MAX_DEPTH} levels")
        self.at += 1
        return depth + 1

    def _object(self, path: Path, depth: int) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        while self._next() != "}":
            key = self._key(at_top=depth == 1 or (depth == 2 and len(path) == 1 and isinstance(path[0], int)))
            if self._next() not in _COLONS:
                raise Broken(self.at, f"a colon is missing after the key {key[:80]!r}")
            self.at += 1
            if key in found:
                message = f"the key {key[:80]!r} stands twice in {dotted((*self.within, *path)) or 'the plan'}"
                self.notes.append(Note("DUPLICATE_KEY", (*path, key), message))
            found[key] = self._value((*path, key), depth)
            self._comma_or("}")
        self.at += 1
        return found

    def _list(self, path: Path, depth: int) -> list[JSON]:
        found: list[JSON] = []
        while self._next() != "]":
            found.append(self._value((*path, len(found)), depth))
            self._comma_or("]")
        self.at += 1
        return found

    def _comma_or(self, closing: str) -> None:
        following = self._next()
        if following in _COMMAS:
            self.at += 1
        elif following != closing:
            raise Broken(self.at, f"a comma or {closing} is missing before {self.text[self.at : self.at + 20]!r}")

    def _string(self) -> str:
        quote = self.text[self.at]
        found = (_DOUBLE if quote == '"' else _SINGLE).match(self.text, self.at)
        if found is None or found[2] is None:
            raise Cut(len(self.text))
        body = found[1] if quote == '"' else _SINGLE_TO_DOUBLE.sub(_requoted, found[1])
        try:
            text: str = json.loads(f'"{body}"', strict=False)
        except ValueError:
            raise Broken(self.at, "a string holds a backslash that escapes nothing") from None
        self.at = found.end()
        return text

    def _key(self, *, at_top: bool) -> str:
        quoted = self._next() in "\"'"
        bare = None if quoted else _KEY.match(self.text, self.at)
        if not quoted and bare is None:
            if at_top and self.text[self.at] in _ODD_QUOTES:
                self.keys.add("")
            raise Broken(self.at, f"a key is missing before {self.text[self.at : self.at + 20]!r}")
        key = bare[0] if bare else self._string()
        self.at = bare.end() if bare else self.at
        # Prose has {words} in braces; with a quote or a colon it is meant as JSON.
        if at_top and (quoted or self._next() in _COLONS):
            self.keys.add(key)
        return key

    def _word(self, path: Path) -> JSON:
        found = _WORD.match(self.text, self.at)
        word = found[0] if found else ""
        if found is None or (word not in _WORDS and word not in _NOT_NUMBERS):
            raise Broken(self.at, f"{self.text[self.at : self.at + 20]!r} is no value of JSON")
        self.at = found.end()
        if word in _WORDS:
            return _WORDS[word]
        self.notes.append(Note("PLAN_SYNTAX", path, f"{word} is not JSON; write a number, or null"))
        return _NOT_NUMBERS[word]

    def _next(self) -> str:
        """The next character that is neither white space nor part of a comment."""
        blank = _BLANK.match(self.text, self.at)
        if blank is not None and blank.end() > self.at:
            if _ELISION.search(blank[0]):
                raise Broken(self.at, "a comment stands here for what was left out; write everything")
            self.at = blank.end()
        if self.at >= len(self.text) or self.text.startswith(_FENCE, self.at):
            raise Cut(self.at)
        return self.text[self.at]


def _requoted(escape: re.Match[str]) -> str:
    if escape[0] == '"':
        return '\\"'
    return "'" if escape[1] == "'" else escape[0]
