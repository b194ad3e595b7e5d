"""The named SQL statements of this package, read once from `queries.sql`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)
_COMMENTS_AFTER = re.compile(r"(\n\s*(--.*)?)+\Z")


def parse_queries(text: str) -> Mapping[str, str]:
    """Statement by name, from text where a line `-- name: xyz` starts each one.

    Comments before the first name and after a statement are dropped, and so is its semicolon. ValueError when a name is
    used twice: the second would win in silence.
    """
    _, *parts = _NAME.split(text)
    statements: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in statements:
            raise ValueError(f"two statements are named {name!r}; rename one of them")
        statements[name] = _COMMENTS_AFTER.sub("", body).strip().removesuffix(";")
    return MappingProxyType(statements)


QUERIES: Mapping[str, str] = parse_queries(files("checkpoints").joinpath("queries.sql").read_text("utf-8"))
