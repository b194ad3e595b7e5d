"""Numbers that are somebody's, by the check digits that their issuers have given them: cards, accounts, ID numbers.

Cards: ISO/IEC 7812 (Luhn). Accounts: ISO 13616 (mod 97). ID numbers: China (GB 11643), Spain (DNI, NIE), France (NIR),
Italy (codice fiscale), Brazil (CPF), Poland (PESEL), India (Aadhaar, Verhoeff), Germany (Steuer-ID, ISO 7064); of the
United States and the United Kingdom, which have no check digits, by their form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_UK = r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CHINA = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_PESEL = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)
_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
         10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip


def is_card(text: str) -> bool:
    """Whether the digits of a text are the number of a payment card."""
    digits = _digits(text)
    doubled = [digit if place % 2 == 0 else (digit * 2 - 9 if digit > 4 else digit * 2) for place, digit in
               enumerate(reversed(digits))]  # fmt: skip
    known = 13 <= len(digits) <= 19 and digits[0] == _SHORT_CARDS.get(len(digits), digits[0])
    return known and sum(doubled) % 10 == 0 and len(set(digits)) > 1


_SHORT_CARDS = {13: 4, 14: 3, 15: 3}
"""What cards of fewer than 16 digits begin with (Visa, Diners Club, American Express). No moment in 14 digits does."""


def is_iban(text: str) -> bool:
    """Whether a text is the number of a bank account."""
    number = text.replace(" ", "")
    moved = number[4:] + number[:4]
    return 15 <= len(number) <= 34 and int("".join(str(int(each, 36)) for each in moved)) % 97 == 1


def found_in(text: str) -> Iterator[tuple[int, int]]:
    """Where ID numbers stand in a text."""
    for form, is_one in _FORMS:
        for found in form.finditer(text):
            if is_one(found[0]):
                yield found.span()


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if each.isascii() and each.isdigit()]


def _china(text: str) -> bool:
    total = sum(weight * digit for weight, digit in zip(_CHINA, _digits(text[:17]), strict=True))
    return "10X98765432"[total % 11] == text[17].upper() and _is_day(text[10:12], text[12:14])


def _spain(text: str) -> bool:
    number = text.replace("-", "").upper()
    return LETTERS[int(number[:-1].translate(str.maketrans("XYZ", "012"))) % 23] == number[-1]


def _france(text: str) -> bool:
    digits = text.replace(" ", "")
    return int(digits[13:]) == 97 - int(digits[:13]) % 97


def _italy(text: str) -> bool:
    total = sum(_ODD[each] if place % 2 == 0 else int(each, 36) - (10 if each.isalpha() else 0) for place, each in
                enumerate(text[:15].upper()))  # fmt: skip
    return chr(ord("A") + total % 26) == text[15].upper()


def _brazil(text: str) -> bool:
    digits = _digits(text)
    checks = [
        sum(digit * weight for digit, weight in zip(digits, range(last + 1, 1, -1), strict=False)) * 10 % 11 % 10
        for last in (9, 10)
    ]
    return checks == digits[9:] and len(set(digits)) > 1


def _poland(text: str) -> bool:
    digits = _digits(text)
    total = sum(weight * digit for weight, digit in zip(_PESEL, digits, strict=False))
    return (10 - total % 10) % 10 == digits[10] and _is_day(f"{digits[2] % 2}{digits[3]}", text[4:6])


def _germany(text: str) -> bool:
    digits, product = _digits(text), 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    counts = sorted(digits[:10].count(each) for each in set(digits[:10]))
    return (11 - product) % 10 == digits[10] and counts[-1] in (2, 3) and len(counts) in (8, 9)


def _india(text: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(_digits(text))):
        check = _dihedral(check, _permuted(place % 8, digit))
    return check == 0


def _permuted(times: int, digit: int) -> int:
    for _ in range(times):
        digit = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[digit]
    return digit


def _dihedral(left: int, right: int) -> int:
    if left < 5:
        return (left + right) % 5 + (0 if right < 5 else 5)
    return (left - right) % 5 + (5 if right < 5 else 0)


def _is_day(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def _by_form(_text: str) -> bool:
    return True


_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
    (re.compile(r"(?<!\w)[1-9]\d{5}(?:19|20)\d{9}[\dXx](?!\w)"), _china),
    (re.compile(r"(?<!\w)(?:\d{8}|[XYZ]\d{7})-?[A-Z](?!\w)"), _spain),
    (re.compile(r"(?<![\w.])[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?\d{2} ?\d{3} ?\d{3} ?\d{2}(?!\w)"), _france),
    (re.compile(r"(?<!\w)[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z](?!\w)"), _italy),
    (re.compile(r"(?<![\w.])\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)"), _brazil),
    (re.compile(r"(?<![\w.])\d{11}(?![\w]|\.\d)"), _poland),
    (re.compile(r"(?<![\w.])[1-9]\d{10}(?![\w]|\.\d)"), _germany),
    (re.compile(r"(?<![\w.])[1-9]\d ?\d{3} ?\d{3} ?\d{3}(?![\w]|\.\d)"), _germany),
    (re.compile(r"(?<![\w.-])[2-9]\d{3}([ -])\d{4}\1\d{4}(?![\w-]| \d)"), _india),
    (re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"), _by_form),
    (re.compile(rf"(?<!\w){_UK}(?: ?\d{{2}}){{3}} ?[A-D](?!\w)"), _by_form),
)  # fmt: skip
