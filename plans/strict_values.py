"""What rules over arguments judge values with: addresses, hosts, numbers, patterns and paths, read strictly.

All of it is about what hostile values look like: what cannot be read in one way only is not read at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from plans.values import JSON

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
# Quotes, spaces, commas, % and ! are not among them: with those an address can name two hosts.
_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+='#~/-]{0,63}@([A-Za-z0-9.-]{1,253})", re.ASCII)
_NUMERAL = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)
_ODD = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def domain_of_address(value: JSON) -> str | None:
    """The domain, in lower case, of one plain address; None for everything else."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    domain = found[1].lower() if found else ""
    return domain if _HOST.fullmatch(domain) else None


def host_of_url(value: JSON, schemes: Sequence[str]) -> str | None:
    """The host of a URL, in lower case, with its port where that is not the scheme's own. None for another scheme, for
    one with a user, and for what two programs might read differently."""
    if not isinstance(value, str) or len(value) > 8_000 or _ODD.search(value):
        return None
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    netloc = parts.netloc.lower()
    if parts.scheme not in schemes or netloc not in (host, f"{host}:{port}") or not _HOST.fullmatch(host):
        return None
    return host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"


def under(host: str, allowed: Iterable[str], *, subdomains: bool) -> bool:
    """Whether a host is one of those allowed, or below one."""
    return any(host == name or (subdomains and host.endswith(f".{name}")) for name in allowed)


def number_of(value: JSON | Decimal) -> Decimal | None:
    """A finite number, as JSON or as plain digits in a text; "1e9", NaN and true are none."""
    match value:
        case bool():
            return None
        case Decimal():
            return value if value.is_finite() else None
        case int():
            return Decimal(value)
        case float():
            return Decimal(repr(value)) if math.isfinite(value) else None
        case str() if _NUMERAL.fullmatch(value):
            return Decimal(value)
        case _:
            return None


def same(value: JSON | Decimal, allowed: str | float) -> bool:
    """Whether two values are the same JSON: a number may be written as 2 or 2.0, and is neither text nor boolean."""
    if isinstance(allowed, bool | str) or isinstance(value, bool | str):
        return type(value) is type(allowed) and value == allowed
    return isinstance(value, int | float | Decimal) and number_of(value) == number_of(allowed)


def matches(pattern: str, value: str) -> bool:
    """Whether a pattern describes the whole of a text."""
    try:
        _compiled(pattern).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> TypeAdapter[str]:
    """pydantic's own expressions are Rust's, which never go back over a text."""
    return TypeAdapter(Annotated[str, StringConstraints(pattern=rf"\A(?:{pattern})\z")])


def inside(value: JSON, folder: str) -> bool:
    """Whether a path is below a folder, without a step up and without what a shell or another system reads into it."""
    if not isinstance(value, str) or not value or "\\" in value or not value.isprintable() or value.startswith("~"):
        return False
    path, root = PurePosixPath(value), PurePosixPath(folder)
    if ".." in path.parts or path.is_absolute() != root.is_absolute():
        return False
    return path != root and path.is_relative_to(root)


def host_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names in lower case; ValueError for what is none."""
    for name in names:
        if not _HOST.fullmatch(name.lower()):
            raise ValueError(f"{name!r} is no domain; write it as example.com")
    return tuple(name.lower() for name in names)


def hosts_with_ports(names: Sequence[str]) -> tuple[str, ...]:
    """The hosts in lower case, each with a port or without; ValueError for what is none."""
    for name in names:
        host, colon, port = name.partition(":")
        if not _HOST.fullmatch(host.lower()) or (colon and not re.fullmatch(r"[1-9][0-9]{0,4}", port)):
            raise ValueError(f"{name!r} is no host; write it as example.com or example.com:8443")
    return tuple(name.lower() for name in names)


def readable_pattern(pattern: str) -> str:
    """The pattern; ValueError if it is none."""
    try:
        # Alone too: "a)|(b" would end the group that keeps it to the whole of a text.
        TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
        _compiled(pattern)
    except SchemaError as error:
        told = str(error).strip().rsplit("error: ", maxsplit=1)[-1].split("\n", maxsplit=1)[0]
        raise ValueError(f"no regular expression that takes linear time: {told}") from None
    return pattern


def plain_folder(folder: str) -> str:
    """The folder; ValueError for one that nothing is inside of."""
    if ".." in PurePosixPath(folder).parts or "\\" in folder or not folder.isprintable() or folder.startswith("~"):
        raise ValueError(f"{folder!r} is no plain folder; write it out, without .. and ~")
    return folder
