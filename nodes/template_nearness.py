"""How near a goal is to a template that does not match it, and why: a measure that only counts words. Pure.

`understood` is how much of what the goal says the template knows, from its patterns and examples; `asked` how much of
what one of its examples says the goal says. A word that few templates know weighs more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodes.template_plans import Template
from nodes.template_text import MAX_GOAL, language_of
from nodes.template_words import CONDITIONAL, FORBIDDEN, MARKS, OTHER_QUESTIONS, Vocabulary, first_word, words_of


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near one template is. `strange` are the goal's words that it does not know, `elsewhere` those of them that
    other templates do, `refused` those that say that the goal asks for something else: words that only goals it leaves
    alone say, or begin with, and a condition, a prohibition or another question of the goal's own. `turned` says that
    the goal denies what the nearest example does not, or the other way about. `like_example` and `like_other` compare
    all of its words with those of the most similar example, and of the most similar goal that the template leaves
    alone."""

    template: Template
    understood: float
    asked: float
    strange: frozenset[str]
    elsewhere: frozenset[str]
    refused: frozenset[str]
    turned: bool
    like_example: float
    like_other: float

    @property
    def score(self) -> float:
        """Between 0 and 1; both must be high."""
        total = self.understood + self.asked
        return 2 * self.understood * self.asked / total if total else 0.0


def nearest(goal: str, templates: Sequence[Template]) -> list[Nearness]:
    """Every template with its distance from a goal, the nearest first; in equal distance, in their order."""
    if len(goal) > MAX_GOAL:
        return []
    language = language_of(goal)
    vocabularies = [template.vocabularies[language] for template in templates]
    weights = _Weights(vocabularies)
    said, first = words_of(goal, language), first_word(goal)
    found = [_near(each, own, said, first, weights) for each, own in zip(templates, vocabularies, strict=True)]
    return sorted(found, key=lambda near: -near.score)


class _Weights:
    """How much a word says: the more, the fewer templates know it."""

    def __init__(self, vocabularies: Sequence[Vocabulary]) -> None:
        self.knowing = Counter(word for each in vocabularies for word in each.known)
        self._templates = len(vocabularies)

    def share(self, part: Iterable[str], whole: Iterable[str]) -> float:
        """How much of what some words say is said by these."""
        return self._of(part) / (self._of(whole) or 1.0)

    def _of(self, words: Iterable[str]) -> float:
        return sum(1.0 + math.log(self._templates / max(1, self.knowing[word])) for word in words)


def _near(template: Template, own: Vocabulary, said: frozenset[str], first: str, weights: _Weights) -> Nearness:
    strange = said - own.known
    asked = {words: weights.share(said & words, words) for words in own.examples}
    example = max(asked, key=lambda words: asked[words], default=frozenset[str]())
    return Nearness(
        template=template,
        understood=weights.share(said & own.known, said),
        asked=asked.get(example, 0.0),
        strange=strange,
        elsewhere=frozenset(word for word in strange if weights.knowing[word]),
        refused=said & own.refused
        | strange & ({CONDITIONAL, FORBIDDEN} | OTHER_QUESTIONS)
        | {first} & own.refused_first,
        turned=said & MARKS != example & MARKS,
        like_example=max((weights.share(said & each, said | each) for each in own.examples), default=0.0),
        like_other=max((weights.share(said & each, said | each) for each in own.others), default=0.0),
    )
