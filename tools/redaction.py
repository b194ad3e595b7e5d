"""Secrets out of texts: what looks like a credential is blanked before a text is stored, shown or sent anywhere.

How credentials look stands in `plans/credentials.py`. Secrets that are known by themselves are blanked wherever they
stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plans.counting import counted
from plans.credentials import BLANK, replaced, replaced_in
from plans.texts import mapped

LEAST_KNOWN = 6
"""Shorter secrets of settings are not looked for: they would blank out half of each message."""
LEAST_WORD = 12
"""The same of secrets that are one plain word, such as the password "postgres"."""

_known: dict[str, None] = {}
_lent: Counter[str] = Counter()


def remember(secrets: Iterable[str]) -> None:
    """Secrets of this process's settings, which are blanked from here on wherever they stand, in whatever words."""
    fresh = {each for each in secrets if len(each) >= (LEAST_WORD if each.isalpha() else LEAST_KNOWN)}
    for secret in sorted({*_known, *fresh}, key=len, reverse=True):
        _known.pop(secret, None)
        _known[secret] = None


@contextmanager
def lent(secrets: Iterable[str]) -> Iterator[None]:
    """Secrets that a call has been given, which are known while it lasts."""
    with counted(_lent, *(each for each in secrets if len(each) >= LEAST_KNOWN)):
        yield


def redacted(text: str) -> str:
    """The text without known secrets, and without what looks like a credential: private keys, passwords in URLs and
    beside their names, tokens and keys by their formats. Takes time in proportion to the text; a text that was redacted
    stays as it is."""
    return replaced(known_blanked(text))


def redacted_in(value: Any) -> Any:
    """The same for a value of JSON; fields that are called like a credential lose their text too."""
    return replaced_in(known_blanked(value))


def known_blanked(value: Any) -> Any:
    """A text or a value of JSON without the known secrets."""
    return value_without(value, [*_lent, *_known]) if _lent or _known else value


def without(text: str, secrets: Sequence[str], blank: str = BLANK) -> str:
    """The text with each of these secrets blanked; of two that begin alike the longer one should come first."""
    for secret in secrets:
        text = text.replace(secret, blank)
    return text


def value_without(value: Any, secrets: Sequence[str], blank: str = BLANK) -> Any:
    """The same for a value of JSON: in all its texts and names."""
    return mapped(value, lambda text: without(text, secrets, blank)) if secrets else value
