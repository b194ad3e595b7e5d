"""What an operation's tool declares: its method is the floor of its effect, configuration says the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tools.http.messages import is_header
from tools.openapi.config import ONLY_HERE, Service
from tools.openapi.operations import Operation
from tools.spec import LEAST_ASSUMED

CALL_S = 15.0
"""How long a call may take unless configuration says otherwise: the customary time of an external API."""
_REPEATABLE = frozenset({"PUT", "DELETE"})
"""Methods that HTTP promises to be the same once and twice (RFC 9110, 9.2.2)."""
_NEVER_READS = frozenset({"PUT", "PATCH", "DELETE"})


def said_of(service: Service, operation: Operation, name: str) -> dict[str, Any]:
    """What configuration says of an operation, by the name of its tool, its operationId, or method and path."""
    said: dict[str, Any] = dict(service.every)
    for key in (operation.title, operation.operation_id, name):
        said |= service.tools.get(key or "", {})
    return said


def declared(said: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    """The fields of a ToolSpec. A method that promises to change nothing makes a read of low risk; every other one is
    irreversible and of medium risk, DELETE of high risk, until configuration says more."""
    effect = said.get("effect", "read" if operation.reads else LEAST_ASSUMED)
    risk = "high" if operation.method == "DELETE" else "low" if effect == "read" else "medium"
    fields = {"timeout_s": CALL_S, "risk": risk, **said, "effect": effect}
    return {key: value for key, value in fields.items() if key not in ONLY_HERE}


def faults(said: Mapping[str, Any], operation: Operation) -> Iterable[str]:
    """What configuration says of an effect that cannot be so."""
    effect, header = said.get("effect"), said.get("idempotency_header")
    if effect == "read" and operation.method in _NEVER_READS:
        yield f"is a {operation.method}, which writes; it cannot be declared a read"
    if effect == "transactional":
        yield "is called over the network, so it cannot be transactional"
    if effect == "idempotent" and header is None and operation.method not in _REPEATABLE:
        yield (
            f"is a {operation.method} and declared idempotent; name the header that takes its key as idempotency_header"
        )
    if header is not None and not (isinstance(header, str) and is_header(header)):
        yield f"has the idempotency_header {header!r}, which is no name of a header"
