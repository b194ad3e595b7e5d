"""Counts what is inside of blocks that may overlap; of what is over nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def counted(inside: Counter[str], *names: str) -> Iterator[None]:
    """Each of these names is among those inside, once more, while the block lasts."""
    inside.update(names)
    try:
        yield
    finally:
        inside.subtract(names)
        for name in set(names):
            if not inside[name]:
                del inside[name]
