"""Sentences of the tools in English and Chinese: a note is a key with values, and becomes text at the tool's edge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.tabular.arguments import Language
from tools.tabular.words_en import WORDS as ENGLISH
from tools.tabular.words_zh import WORDS as CHINESE

_WORDS: Mapping[Language, Mapping[str, str]] = {"en": ENGLISH, "zh": CHINESE}
_ASSUMED = "assumed_"
_BETWEEN_HAN = re.compile("(?<=[\u3001\u4e00-\u9fff]) (?=[\u3001\u4e00-\u9fff])")


@dataclass(frozen=True)
class Note:
    """Something to tell about a table, not yet in any language."""

    key: str
    values: Mapping[str, object]


def note(key: str, **values: object) -> Note:
    """A note; its key stands in the words of both languages."""
    return Note(key, values)


def say(language: Language, key: str, **values: object) -> str:
    """The sentence of this key. Integers get thousands separators, a `kind` of column its name; `key_one` is used
    where `count` is 1."""
    words = _WORDS[language]
    chosen = f"{key}_one" if values.get("count") == 1 and f"{key}_one" in words else key
    shown = {name: f"{value:,}" if type(value) is int else value for name, value in values.items()}
    if "kind" in shown:
        shown["kind"] = words[f"type_{shown['kind']}"]
    said = words[chosen].format(**shown)
    return _BETWEEN_HAN.sub("", said) if language == "zh" else said


def heading(text: str) -> str:
    """A sentence as a heading: a capital in front, no full stop."""
    return text[:1].upper() + text[1:].rstrip(".。")


def assumptions(notes: Iterable[Note], language: Language) -> tuple[str, ...]:
    """What was taken for granted, as sentences."""
    return _sentences((n for n in notes if n.key.startswith(_ASSUMED)), language)


def warnings(notes: Iterable[Note], language: Language) -> tuple[str, ...]:
    """What looks wrong, as sentences."""
    return _sentences((n for n in notes if not n.key.startswith(_ASSUMED)), language)


def _sentences(notes: Iterable[Note], language: Language) -> tuple[str, ...]:
    return tuple(dict.fromkeys(say(language, n.key, **n.values) for n in notes))


def joined(parts: Iterable[str], language: Language) -> str:
    """A list within a sentence."""
    return ("、" if language == "zh" else ", ").join(parts)
