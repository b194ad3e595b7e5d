"""What the user is asked, and which answers there are to it: words of their own, one of several, or yes or no. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plans.values import JSON, unclean
from plans.wording import listed

AnswerKind = Literal["text", "choice", "confirmation"]
LONGEST = 10_000
"""Longest answer in words, in characters."""
YES = frozenset({"yes", "y", "true", "ja", "j", "oui", "sí", "si", "sim", "是", "はい"})
NO = frozenset({"no", "n", "false", "nein", "non", "não", "否", "不", "いいえ"})


class NoAnswer(ValueError):
    """Words that are no answer to the question; the text says what would be one."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the user. `choices` are the answers there are, where one is to be chosen."""

    text: str
    kind: AnswerKind = "text"
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Question:
        """The question that these arguments of the tool `ask_user` put."""
        return cls(str(args["question"]), args.get("kind") or "text", tuple(args.get("choices") or ()))

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON schema of what the user says."""
        if self.kind == "choice":
            return {"type": "string", "enum": list(self.choices)}
        if self.kind == "confirmation":
            return {"type": "string", "enum": ["yes", "no"]}
        return {"type": "string", "minLength": 1, "maxLength": LONGEST}

    def answer(self, said: str) -> JSON:
        """What the user means by these words: a text, one of the choices as it is written, or true or false. Raises
        NoAnswer. Nothing is guessed: case and space around the words are all that is forgiven."""
        words = said.strip()
        if self.kind == "choice":
            return _chosen(words, self.choices)
        if self.kind == "confirmation":
            if words.casefold() in YES | NO:
                return words.casefold() in YES
            raise NoAnswer("the question is answered by yes or no")
        if not words:
            raise NoAnswer("the answer is empty")
        if len(words) > LONGEST:
            raise NoAnswer(f"the answer has {len(words):,} characters; at most {LONGEST:,} are taken")
        if (found := next(unclean(words), None)) is not None:
            raise NoAnswer(f"the answer cannot be stored: {found[1]}")
        return words


def _chosen(words: str, choices: tuple[str, ...]) -> str:
    if words in choices:
        return words
    alike = [choice for choice in choices if choice.strip().casefold() == words.casefold()]
    if len(alike) == 1:
        return alike[0]
    raise NoAnswer(f"the question is answered by one of: {listed(choices)}")
