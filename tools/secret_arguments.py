"""Which arguments of a tool are secret: those it declares, those whose type says so, those that are called like one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plans.credentials import is_credential_field

_TEXT = frozenset({"string", "null"})


def secret_arguments(declared: Iterable[str], schema: Mapping[str, Any]) -> frozenset[str]:
    """Their names. A type says so by `format: password` or `writeOnly` (pydantic's SecretStr has both); a name by what
    it ends in (`password`, `api_key`, `page_token`), where the argument is a text."""
    properties = schema.get("properties")
    fields = properties if isinstance(properties, Mapping) else {}
    return frozenset(declared) | {name for name, field in fields.items() if _is_secret(name, field)}


def _is_secret(name: str, field: Any) -> bool:
    if not isinstance(field, Mapping):
        return False
    forms = [field, *(each for each in field.get("anyOf") or () if isinstance(each, Mapping))]
    if any(form.get("format") == "password" or form.get("writeOnly") is True for form in forms):
        return True
    kinds = {kind for form in forms for kind in _kinds(form.get("type"))}
    return is_credential_field(name) and "string" in kinds and kinds <= _TEXT


def _kinds(kind: Any) -> list[str]:
    return [kind] if isinstance(kind, str) else [each for each in kind or () if isinstance(each, str)]
