"""Names of tools for operations: their own where they have one, cleaned, and never two alike."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from tools.openapi.operations import Listed

MOST = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def names_for(operations: Sequence[Listed], prefix: str) -> list[str]:
    """A name for each, in their order and yet the same in any: from the operationId, else from method and path. Those
    that would share one end with a digest of method and path."""
    plain = [_plain(operation, prefix) for operation in operations]
    counted = Counter(plain)
    return [
        name if counted[name] == 1 else f"{name[: MOST - 9]}_{_digest(operation.title)}"
        for name, operation in zip(plain, operations, strict=True)
    ]


def _plain(operation: Listed, prefix: str) -> str:
    own = operation.operation_id or f"{operation.method.lower()} {operation.path}"
    cleaned = _UNSAFE.sub("_", own).strip("_") or "operation"
    whole = prefix + cleaned
    return whole if len(whole) <= MOST else f"{whole[: MOST - 9]}_{_digest(operation.title)}"


def _digest(title: str) -> str:
    return hashlib.sha256(title.encode()).hexdigest()[:8]
