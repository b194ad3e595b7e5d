"""What stands in the place of a secret: its name and a keyed hash of it, such as `[sealed:inputs.password#0c1f…]`.

The same secret under the same name has the same placeholder, so that arguments can be compared, named and approved
without it. Without the key a hash tells nothing, not even of a secret that could be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from plans.texts import mapped, texts_with
from plans.values import JSON, Path

HASH_DIGITS = 16
"""Hex digits of the hash in a placeholder: 64 bits, so that nobody hits one by chance."""
_BEGINS = "[sealed:"
_FORM = re.compile(r"\[sealed:([A-Za-z_][\w.-]{0,80})#([0-9a-f]{16})\]")


class Kept(NamedTuple):
    """A secret as it is kept: itself, and the toolkit whose tool has given it ("": a person has)."""

    secret: str
    origin: str = ""


def placeholder(name: str, secret: str, key: bytes) -> str:
    """The placeholder of a secret."""
    digest = hmac.new(key, f"{name}\x00{secret}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"[sealed:{name}#{digest[:HASH_DIGITS]}]"


def hider(key: bytes, kept: dict[str, Kept] | None = None, origin: str = "") -> Callable[[str, str], str]:
    """Puts a placeholder in the place of a credential, within its quotes; what it stands for is added to `kept`."""

    def put(kind: str, found: str) -> str:
        quote = found[0] if len(found) > 1 and found[0] == found[-1] and found[0] in "\"'" else ""
        secret = found[1:-1] if quote else found
        shown = placeholder(kind, secret, key)
        if kept is not None:
            kept[shown] = Kept(secret, origin)
        return f"{quote}{shown}{quote}"

    return put


def name_of(text: str) -> str | None:
    """The name in a text that is one placeholder and nothing else; None where it is none."""
    found = _FORM.fullmatch(text)
    return found[1] if found else None


def placeholders_in(value: JSON) -> set[str]:
    """Every placeholder in the texts of a value."""
    return {found[0] for _, text in texts_with(_BEGINS, value) for found in _FORM.finditer(text)}


def places_of(value: JSON) -> list[Path]:
    """Where texts with placeholders stand."""
    return [path for path, text in texts_with(_BEGINS, value) if _FORM.search(text)]


def alone_in(value: JSON) -> dict[Path, str]:
    """The texts that are one placeholder and nothing else, by their places."""
    return {path: text for path, text in texts_with(_BEGINS, value) if name_of(text) is not None}


def put_back(value: JSON, secrets: Mapping[str, str]) -> JSON:
    """The value with each of these placeholders replaced by its secret; others stay."""
    return mapped(value, lambda text: _FORM.sub(lambda found: secrets.get(found[0], found[0]), text))
