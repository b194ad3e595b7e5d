"""Personal data in texts: e-mail addresses, phone numbers, payment cards, bank accounts and ID numbers of several
countries, found by form and, where a number has one, by its check digits.

This is what is there without anything installed. A detector of names and places (presidio) fits the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import NamedTuple

from plans import id_numbers


class Found(NamedTuple):
    """One piece of personal data in a text: where it stands, and its kind in capital letters."""

    start: int
    end: int
    kind: str


Detector = Callable[[str], Iterable[Found]]
"""Whatever finds personal data in a text."""
Put = Callable[[str, str], str]
"""What stands in the place of such a piece: from its kind and itself."""

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
# In one piece, or in groups as they are embossed; not within an id such as 20261130-094000-9d6eabbe.
_CARD = re.compile(
    r"(?<![\w.-])(?:[2-6]\d{12,18}"
    r"|[2-6]\d{3}(?P<gap>[ -])(?:\d{4}(?P=gap)\d{4}(?P=gap)\d{1,4}(?:(?P=gap)\d{1,3})?|\d{6}(?P=gap)\d{4,5}))"
    r"(?![\w-]|\.\d)"
)
_PHONES = (
    # international, with its plus; or with 00 and groups
    re.compile(r"(?<![\w+])\+\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,6}\d(?!\w)"),
    re.compile(r"(?<![\w.-])00[1-9]\d{0,2}(?:[ /-]\d{2,8}){2,5}(?!\w)"),
    # (555) 123-4567, 555-123-4567, 030 123456, 0171/1234567; a date has none of these forms
    re.compile(r"(?<![\w.-])(?:\(\d{2,5}\)[ /-]?|[2-9]\d{2}[-.])\d{3}[-. ]\d{4}(?![\w-])"),
    re.compile(r"(?<![\w.,:/-])0\d{1,4}[ /]\d{3,8}(?:[ -]\d{2,6}){0,3}(?![\w:/-])"),
    re.compile(r"(?<![\w.+-])1[3-9]\d{9}(?![\w.])"),  # a mobile number in China
)
_DIGIT_OR_AT = re.compile(r"@|\d[\d ./()-]{4,}\d|\d[A-Z]|[A-Z]\d")
"""One of these stands in each text in which anything is found: asked first, because most texts have none."""


def personal_pieces(text: str) -> list[Found]:
    """The personal data in a text, in order and without overlaps."""
    if not _DIGIT_OR_AT.search(text):
        return []
    found = [Found(*each.span(), "EMAIL") for each in _EMAIL.finditer(text)] if "@" in text else []
    found += [Found(*each.span(), "IBAN") for each in _IBAN.finditer(text) if id_numbers.is_iban(each[0])]
    found += [Found(*each.span(), "CARD") for each in _CARD.finditer(text) if id_numbers.is_card(each[0])]
    found += [Found(start, end, "ID") for start, end in id_numbers.found_in(text)]
    found += [Found(*each.span(), "PHONE") for form in _PHONES for each in form.finditer(text) if _dialled(each[0])]
    return apart(found)


def _dialled(text: str) -> bool:
    return 7 <= sum(map(str.isdigit, text)) <= 15


def apart(found: Iterable[Found]) -> list[Found]:
    """The finds in order; of those that overlap the one that was found first, which is of the surer kind."""
    kept: list[Found] = []
    for each in found:
        if all(each.end <= other.start or each.start >= other.end for other in kept):
            kept.append(each)
    return sorted(kept)


def masked(text: str, detect: Detector, put: Put) -> str:
    """The text with each piece of personal data replaced."""
    parts, position = [], 0
    for start, end, kind in apart(detect(text)):
        parts += [text[position:start], put(kind, text[start:end])]
        position = end
    return "".join((*parts, text[position:])) if parts else text


def named(kind: str, _piece: str) -> str:
    """Puts its kind in its place, as people read it: `[e-mail]` of an address. Nothing leads back."""
    return f"[{_WORDS.get(kind, kind.lower())}]"


_WORDS: Mapping[str, str] = {
    "EMAIL": "e-mail", "IBAN": "bank account", "CARD": "card number", "ID": "ID number", "PHONE": "phone number",
}  # fmt: skip


class Pseudonyms:
    """Stand-ins for the personal data of some texts that belong together, such as `<EMAIL_1>`: the same for the same
    piece, and put back in what is made of the texts. Nothing is kept beyond this object."""

    def __init__(self, detect: Detector) -> None:
        self._detect = detect
        self._names: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, str] = {}
        self._taken: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The stand-ins in use, in the order in which they were given out."""
        return tuple(self._pieces)

    def hide(self, text: str) -> str:
        """The text with stand-ins. What the text itself says in the form of one is nobody's."""
        self._taken |= {found[1].upper() for found in _STAND_IN.finditer(text)}
        return masked(text, lambda quoted: self._detect(_ESCAPE.sub("  ", quoted)), self._name)

    def restore(self, text: str) -> str:
        """The text with the pieces back in their places. One that was never given out stays as it is."""
        return _STAND_IN.sub(lambda found: self._pieces.get(f"<{found[1].upper()}>", found[0]), text)

    def _name(self, kind: str, piece: str) -> str:
        known = self._names.get((kind, piece))
        if known is None:
            numbers = (f"{kind}_{number}" for number in count(1))
            free = next(name for name in numbers if f"<{name}>" not in self._pieces and name not in self._taken)
            known = self._names[kind, piece] = f"<{free}>"
            self._pieces[known] = piece
        return known


_ESCAPE = re.compile(r"\\[nrtbf\"\\/]")
"""A line's end and the like as JSON writes them: no letter of what follows belongs to it."""
_STAND_IN = re.compile(r"(?:<|\\u003[cC])([A-Za-z][A-Za-z_]{0,30}_\d{1,6})(?:>|\\u003[eE])")
