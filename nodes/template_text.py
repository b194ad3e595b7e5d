"""The texts of a template: goals made comparable, patterns over them, languages, and holes `<<name>>`.

A hole that is a whole string becomes the value, of whatever type; inside a longer string it becomes text. What is
filled in is data: it is not scanned for holes again, and a `${` in it is no reference later.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from plans.references import as_text, escape
from plans.texts import texts_with
from plans.values import JSON

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
HOLE = re.compile(r"<<([a-z_]+)>>")
MAX_GOAL = 500
"""Longest goal, in characters, that is held against patterns; a longer one asks for more than a template does."""

MAX_DEPTH = 6
"""How deep words may be made of words."""

_ENDLESS = re.compile(r"(?<!\\)\)(?:[*+]|\{[0-9]+,\})")
_WORD = re.compile(r"\{([a-z_]+)\}")
_CJK = "\u3000-\u30ff\u3400-\u9fff"
_CHINESE = re.compile("[\u3400-\u9fff]")
_BESIDE_CJK = re.compile(rf"(?<=[{_CJK}]) | (?=[{_CJK}])")
_END = " .,;:!?…。、\"'“”„«»「」『』"

_BEFORE: dict[Language, str] = {
    "en": r"(?:(?:hi|hello|hey)(?: there)?[,.!]? )?(?:(?:please|kindly|now|(?:can|could|would|will) you(?: please)?"
    r"|i(?:'d| would) like (?:you )?to|i (?:want|need)(?: you)? to|let's|help me(?: to)?),? ){0,3}",
    "zh": r"(?:(?:您好|你好)[,.!。]?)?(?:请问|请您|请你|请|麻烦(?:您|你)?|劳驾|帮我|帮忙|给我"
    r"|能不能|能否|可以|可否|我想知道|我想要|我想|我要|[,、]){0,5}",
}
_AFTER: dict[Language, str] = {
    "en": r"(?:,? (?:please|for me|now|thanks|thank you)){0,3}",
    "zh": r"(?:吗|呢|吧|好吗|可以吗|一下|[,、。]|谢谢(?:您|你)?|多谢){0,4}",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that stands for a reference of the plan, such as the path of an input file."""

    text: str


def comparable(goal: str, language: Language) -> str:
    """A goal as patterns see it: compatibility forms, one kind of space and apostrophe, no marks at its ends."""
    text = unicodedata.normalize("NFKC", goal).replace("’", "'").replace("‘", "'")
    text = " ".join(text.split()).strip(_END)
    return _BESIDE_CJK.sub("", text) if language == "zh" else text


@cache
def whole_goal(pattern: str, words: tuple[tuple[str, str], ...], language: Language) -> re.Pattern[str]:
    """The pattern over a whole goal, `{words}` put in, politeness around it allowed. Raises re.error or KeyError."""
    body = spelled_out(pattern, dict(words))
    if endless := _ENDLESS.search(body):
        # Two ways to read one word, repeated without end, take the regular expression engine for ever.
        raise re.error(f"a group repeats without end ({endless[0]!r}); say how often, such as {{0,4}}")
    return re.compile(f"{_BEFORE[language]}(?:{body}){_AFTER[language]}", re.IGNORECASE)


def spelled_out(pattern: str, words: Mapping[str, str], depth: int = MAX_DEPTH) -> str:
    """The pattern with `{words}` put in, however deep. Raises re.error or KeyError."""
    if depth == 0:
        raise re.error("its words go round in circles")
    return _WORD.sub(lambda word: f"(?:{spelled_out(words[word[1]], words, depth - 1)})", pattern)


def language_of(goal: str) -> Language:
    """The language a goal is answered in where no pattern says it."""
    return "zh" if _CHINESE.search(goal) else "en"


def in_language(value: JSON, language: Language) -> JSON:
    """The value, with every object that has only languages as keys replaced by the text of this one, else English."""
    if isinstance(value, Mapping):
        if is_translated(value):
            return value.get(language, value["en"])
        return {key: in_language(item, language) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_language(item, language) for item in value]
    return value


def is_translated(value: JSON) -> bool:
    """Whether a value is one text in several languages."""
    return isinstance(value, Mapping) and "en" in value and set(value) <= set(LANGUAGES)


def holes_in(value: JSON) -> Iterator[str]:
    """The names of all holes in a value, in order of appearance; keys are not looked at."""
    for _, text in texts_with("<<", value):
        yield from HOLE.findall(text)


def filled(value: JSON, values: Mapping[str, JSON | Reference]) -> JSON:
    """The value with its holes filled; KeyError for a hole without a value."""
    if isinstance(value, str):
        whole = HOLE.fullmatch(value)
        return _as_value(values[whole[1]]) if whole else HOLE.sub(lambda hole: _as_text(values[hole[1]]), value)
    if isinstance(value, Mapping):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, values) for item in value]
    return value


def _as_value(value: JSON | Reference) -> JSON:
    if isinstance(value, Reference):
        return value.text
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {key: _as_value(item) for key, item in value.items()}
    return [_as_value(item) for item in value] if isinstance(value, list | tuple) else value


def _as_text(value: JSON | Reference) -> str:
    return value.text if isinstance(value, Reference) else escape(as_text(value))
