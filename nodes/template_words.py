"""What goals and templates say, word by word, so that they can be compared: English by stems, Chinese by characters.

What only names one thing (an order's number, a file, an amount) is no word. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodes.template_files import TemplateFile
from nodes.template_text import Language, comparable, language_of

SHORTEST = 3
"""A stem has at least so many letters."""

ALONE = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
"""A pattern, put into this, finds a word of its own and no part of one."""

LITERAL = re.compile(
    r"[\w./\\-]+\.[A-Za-z]{2,5}(?![A-Za-z])|[\w.+-]+@[\w.-]+|\"[^\"]*\"|“[^”]*”|「[^」]*」|[A-Za-z]*-?[0-9][A-Za-z0-9.,:-]*",
    re.ASCII,
)
"""What names one thing: a file, an address, a quotation, a number or an id."""

NEGATED, FORBIDDEN, CONDITIONAL = "<not>", "<do not>", "<if>"
MARKS = frozenset({NEGATED, FORBIDDEN, CONDITIONAL})
"""Words that turn what the others say into something else."""

OTHER_QUESTIONS = frozenset(
    {"man", "much", "most", "least", "half", "part", "onl", "when", "wher", "who", "than", "compar"}  # stems
    | set("最只半谁几少候")
)
"""Words that ask another question, or for a part of what is there, where a template does not know them."""

_NAME = re.compile(r"(?<=[a-z0-9,] )[A-Z][a-z]+\b")
_FORBIDS = re.compile(
    r"\b(?:do not|don't|dont|never|without|except|unless|instead of|rather than|but)\b"
    r"|不要|不用|不必|无需|(?<![分类级性区特个识])别(?![的人处])|勿|除了|除非|而不是",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"n't\b|\b(?:not|no|none|nor|yet to)\b|未|没|不|无|尚", re.IGNORECASE)
_IF = re.compile(r"\b(?:if|whether|in case|when)\b|如果|假如|要是|若|的话", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:find out|check|know|see|tell (?:me|us)|look up|say|whether) (?:if|whether)\b|\bwhether\b")
_WORDS = re.compile(r"[a-z]+")
_NO_TEXT = re.compile(r"\(\?P<[a-z_]+>|\(\?:|\\.|-\?")
_EITHER = re.compile(r"\[([a-z])([a-z])\]")
_CHARACTERS = re.compile("[\u3400-\u9fff]")

_ENDINGS = _WORDS.findall("ness ment ings ised ized ing ies ied ise ize ery ous ers er ed es ly s e y")
_SAY_NOTHING = frozenset(
    _WORDS.findall(
        "a an the this that these those it its is are was were be been being am do does did done have has had of in on "
        "at to for from with by as and or so too very me my mine we us our ours you your i he him his she her they "
        "them their there here now please kindly can could would will shall should may might must want like need let s "
        "d ll re ve t which what any some all each every just also then today moment currently present right already "
        "still hi hello hey thanks thank ok well really get got go goes give show tell find see look make made take "
        "out up about into one ones wondering know idea help"
    )
)
_POLITE = frozenset(
    _WORDS.findall("please kindly now can could would will you i d like to want need us let s help hi hello hey there")
)
_SAYS_NOTHING_ZH = frozenset(
    "的了吗呢吧啊呀这那个是在有我你您请帮把将给对就都也又还被里面中一下些及与和并且然后再让来去上到"
)


def words_of(goal: str, language: Language | None = None) -> frozenset[str]:
    """The words of a goal that say something."""
    language = language or language_of(goal)
    text = comparable(goal, language).lower()
    found = {FORBIDDEN} if _FORBIDS.search(text) else set()
    text = _FORBIDS.sub(" ", text)
    if _IF.search(_ASKED.sub(" ", text)):
        found.add(CONDITIONAL)
    if _NEGATES.search(text):
        found.add(NEGATED)
    return frozenset(found | plain_words(_IF.sub(" ", _NEGATES.sub(" ", LITERAL.sub(" ", text)))))


def plain_words(text: str) -> set[str]:
    """English stems and Chinese characters of a text in small letters, those left out that say nothing."""
    english = {stem(word) for word in _WORDS.findall(text) if word not in _SAY_NOTHING and len(word) > 1}
    return english | {character for character in _CHARACTERS.findall(text) if character not in _SAYS_NOTHING_ZH}


def stem(word: str) -> str:
    """What stands for an English word: `deliver`, `delivered` and `delivery` are one."""
    for _ in range(2):
        ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= SHORTEST), "")
        word = word.removesuffix(ending) if not word.endswith("ss") else word
    return word


def literals_of(goal: str) -> list[str]:
    """What names one thing in a goal, in the order in which it stands there."""
    return [found[0].strip('"“”「」').rstrip(".,:-") for found in LITERAL.finditer(goal)]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a template says in one language: the words of each example and of each goal it leaves alone, all that it
    knows, and those that only the latter say. `refused_first` are words that only others begin with."""

    examples: tuple[frozenset[str], ...]
    others: tuple[frozenset[str], ...]
    known: frozenset[str]
    refused: frozenset[str]
    refused_first: frozenset[str]


def vocabulary(written: TemplateFile, language: Language) -> Vocabulary:
    """The words of a template in a language."""
    goals = [example.goal for example in written.examples if language_of(example.goal) == language]
    left_alone = [goal for goal in written.others if language_of(goal) == language]
    examples = tuple(words_of(goal, language) for goal in goals)
    others = tuple(words_of(goal, language) for goal in left_alone)
    known = frozenset[str]().union(*examples, *map(_pattern_words, written.spelled(language)))
    return Vocabulary(
        examples=examples,
        others=others,
        known=known,
        refused=frozenset[str]().union(*others) - known,
        refused_first=frozenset(map(first_word, left_alone)) - frozenset(map(first_word, goals)) - {""},
    )


def first_word(goal: str) -> str:
    """The word an English goal begins with, politeness aside, where it says what is to be done; else nothing."""
    words = _WORDS.findall(goal.lower()) if language_of(goal) == "en" else []
    first = next((word for word in words if word not in _POLITE), "")
    return "" if first in _SAY_NOTHING else stem(first)


def names_of(goal: str) -> list[str]:
    """Words with a capital letter inside an English sentence: people, places, months."""
    return _NAME.findall(LITERAL.sub("", goal))


def _pattern_words(pattern: str) -> set[str]:
    text = _NO_TEXT.sub("", pattern)
    return plain_words(_EITHER.sub(r"\1", text)) | plain_words(_EITHER.sub(r"\2", text))
