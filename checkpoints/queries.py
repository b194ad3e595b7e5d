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

    Comments before the first name and after a statement's semicolon are dropped. ValueError when a statement has no
    semicolon at its end, or when a name is used twice: the second would win in silence.
    """
    _, *parts = _NAME.split(text)
    statements: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in statements:
            raise ValueError(f"two statements are named {name!r}; rename one of them")
        statement = _COMMENTS_AFTER.sub("", body).strip()
        if not statement.endswith(";"):
            raise ValueError(f"the statement {name!r} must end with a semicolon")
        statements[name] = statement[:-1]
    return MappingProxyType(statements)


QUERIES: Mapping[str, str] = parse_queries(files("checkpoints").joinpath("queries.sql").read_text("utf-8"))
