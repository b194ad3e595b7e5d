"""Which arguments of a tool decide over whom or what it reaches, and how much of it: those that no stranger may fill.

A tool names them in `sensitive_args`. One that says nothing has those that are called so: a recipient, an address, a
URL, an amount, an account, a path, a command. Of a tool that only reads only where it connects to counts: what is asked
for there is told to whoever is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from plans.values import JSON, Path
from tools.spec import ToolSpec

_WHERE = frozenset(
    {
        "url", "urls", "uri", "uris", "link", "links", "href", "host", "hosts", "hostname", "domain", "endpoint",
        "webhook", "callback",
    }
)  # fmt: skip
_WORDS = _WHERE | {
    "recipient", "recipients", "receiver", "receivers", "to", "cc", "bcc", "email", "emails", "mail", "mails",
    "address", "addresses", "phone", "mobile", "channel", "channels", "participant", "participants", "invitee",
    "invitees", "attendee", "attendees", "assignee", "payee", "beneficiary",
    "amount", "amounts", "price", "currency", "quantity",
    "account", "accounts", "iban", "bic", "card", "wallet", "user", "users", "username", "password", "role", "roles",
    "permission", "permissions", "owner",
    "path", "paths", "file", "files", "filename", "folder", "directory", "destination", "target",
    "command", "commands", "cmd", "script", "sql",
}  # fmt: skip
_ONLY_ALONE = frozenset({"to", "role", "file", "files"})
"""Words that mean something else within a name: `valid_to`, `file_format`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_sensitive(spec: ToolSpec, path: Path, value: JSON = None) -> bool:
    """Whether what stands at this place of the arguments, or a part of it, is for no stranger to say."""
    if spec.sensitive_args is not None:
        return bool(path) and path[0] in spec.sensitive_args
    words = _WHERE if spec.effect == "read" else _WORDS
    return any(_is_called(key, words) for key in path if isinstance(key, str)) or _holds(value, words)


def may_be_sensitive(spec: ToolSpec, args: Mapping[str, JSON]) -> bool:
    """Whether any of these arguments can be; of a tool with an effect and no declaration only their values tell."""
    if spec.sensitive_args is not None:
        return any(name in args for name in spec.sensitive_args)
    return spec.effect != "read" or any(_is_called(name, _WHERE) for name in args)


def _holds(value: JSON, words: frozenset[str]) -> bool:
    """Whether a value has a field that is called so, at any depth."""
    if isinstance(value, dict):
        return any(_is_called(key, words) or _holds(item, words) for key, item in value.items())
    return isinstance(value, list) and any(_holds(item, words) for item in value)


@lru_cache(maxsize=4_096)
def _is_called(name: str, words: frozenset[str]) -> bool:
    parts = [part.lower() for part in _WORD.findall(name)]
    if len(parts) == 1 or not parts:
        return bool(parts) and parts[0] in words
    return any(part in words and part not in _ONLY_ALONE for part in parts) or (parts[0] == "to" and "to" in words)
