"""Where a reference within a document leads: `#/a/b`, a JSON Pointer in a URL's fragment (RFC 6901, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_MOST_DIGITS = 8
"""Digits of the largest index that is looked for; a longer one could only be meant to keep us busy."""


def followed(root: Any, ref: str) -> Any:
    """What the reference names, `#` the whole. LookupError for one that leads out of the document, to a mark in it, or
    to nothing."""
    if ref.partition("/")[0] != "#":
        raise LookupError(ref)
    found = root
    for step in ref.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and len(key) <= _MOST_DIGITS and int(key) < len(found):
            found = found[int(key)]
        else:
            raise LookupError(ref)
    return found
