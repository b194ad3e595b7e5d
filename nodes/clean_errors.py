"""Exceptions that leave a node are stored in checkpoints and told to clients by whoever runs the graph: no credential
stands in their texts, nor in those of what they came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.redaction import redacted


@contextmanager
def clean_errors() -> Iterator[None]:
    """What is raised within goes on as it is, with clean texts."""
    try:
        yield
    except BaseException as error:
        clean(error)
        raise


def clean(error: BaseException) -> None:
    """Change the texts of an exception and of all that it came from, where a credential stands in them."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        shown = tuple(_clean(part) for part in each.args)
        if shown != each.args:
            each.args = shown
        waiting += [each.__cause__, each.__context__]


def _clean(part: Any) -> Any:
    return redacted(part) if isinstance(part, str) else part
