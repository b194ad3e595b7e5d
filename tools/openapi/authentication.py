"""Who we are to a service: from the document's security schemes and configured secrets to what is sent along.

Secrets come from configuration alone. They are no arguments, stand in no plan, and are blanked where an answer repeats
them.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from plans.values import JSON, printable
from plans.wording import listed
from tools.http.messages import is_header
from tools.openapi.config import Service
from tools.openapi.document import Document, Faulty
from tools.openapi.operations import Operation
from tools.redaction import value_without

BLANK = "[secret]"
_LEAST_SECRET = 6
"""Shorter texts are not blanked in answers: they would blank out half of them."""


@dataclass(frozen=True, slots=True)
class Credential:
    """One thing to send; `secrets` are the texts of it that must not be repeated."""

    place: Literal["header", "query", "cookie"]
    name: str
    value: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def credentials_for(document: Document, operation: Operation, service: Service) -> tuple[Credential, ...] | str:
    """What to send for an operation: the fixed headers, and the first alternative that is configured. A text where
    none is: what to set. Raises Faulty for schemes that cannot be used."""
    fixed = tuple(_header(name, secret.get_secret_value()) for name, secret in service.headers.items())
    for alternative in sorted(operation.security, key=len, reverse=True):
        if all(name in service.auth for name in alternative):
            found = [_credential(document, name, service.auth[name].get_secret_value()) for name in alternative]
            return (*fixed, *found)
    if fixed:  # a person has said what goes along, whatever the document calls it
        return fixed
    wanted = [" and ".join(f"auth.{name}" for name in each) for each in operation.security]
    return f"set {' or '.join(wanted)} of this service to its secret"


def blanked(body: bytes, credentials: tuple[Credential, ...]) -> bytes:
    """An answer without the secrets that it repeats, as they are or as JSON and URLs write them."""
    for secret in _written(credentials):
        body = body.replace(secret.encode(), BLANK.encode())
    return body


def blanked_value(value: JSON, credentials: tuple[Credential, ...]) -> JSON:
    """What was read of an answer, without the secrets in its texts: JSON and charsets have more than one way to write
    the same text."""
    return value_without(value, _written(credentials), BLANK)


def _written(credentials: tuple[Credential, ...]) -> list[str]:
    """Every way in which the secrets are usually written, the longest first."""
    secrets = {secret for each in credentials for secret in each.secrets if len(secret) >= _LEAST_SECRET}
    found = set(secrets)
    for secret in secrets:
        in_json = json.dumps(secret)[1:-1]
        found |= {in_json, in_json.replace("/", "\\/"), quote(secret), quote(secret, safe="")}
    return sorted(found, key=len, reverse=True)


def _header(name: str, value: str) -> Credential:
    return Credential("header", name, value, (value, *value.split()[1:]))


def _credential(document: Document, name: str, secret: str) -> Credential:
    place = f"components.securitySchemes.{name}"
    if name not in document.schemes:
        raise Faulty(place, f"is not there; there are {listed(list(document.schemes))}")
    scheme = document.resolved(document.schemes[name], place)
    kind, how = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    if kind == "apiKey" and scheme.get("in") in ("header", "query", "cookie") and isinstance(scheme.get("name"), str):
        if scheme["in"] == "header" and not is_header(scheme["name"]):
            raise Faulty(place, f"has the name {printable(scheme['name'])!r}, which no header can have")
        return Credential(scheme["in"], scheme["name"], secret, (secret,))
    if kind == "http" and how == "basic":
        packed = base64.b64encode(secret.encode()).decode()
        return Credential("header", "Authorization", f"Basic {packed}", (secret, packed, *secret.split(":")[1:]))
    if kind in ("oauth2", "openIdConnect") or (kind == "http" and how == "bearer"):
        return Credential("header", "Authorization", f"Bearer {secret}", (secret,))
    raise Faulty(place, f"is of the kind {f'{kind} {how}'.strip()!r}; keys, bearer tokens and basic can be sent")
