"""A URL taken apart once and strictly, so that nobody after this reads it in another way."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from plans.failure import ToolFailure

DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
MAX_LENGTH = 8_000
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?"
)
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
# What a path or query may hold as it stands (RFC 3986); everything else is percent-encoded, % itself is kept.
_KEPT = "!$&'()*+,;=:@/?%-._~"

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `host` is a name in lower case or an address in its usual form, without brackets; `path`
    begins with a slash and has the query behind it."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What has to be the same for two targets to be the same server."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole of it."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def shown(self) -> str:
        """For a message: without the query, which may hold what is private."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


def parse(url: str, params: Mapping[str, Scalar | Sequence[Scalar]] | None = None) -> Target:
    """The target of an absolute http or https URL, with parameters added to its query. A fragment is dropped.

    ToolFailure INVALID_ARGS for what is no such URL, NOT_PERMITTED for what can be read in two ways: a user in front
    of the host, numbers that stand for addresses, letters that look like others.
    """
    if len(url) > MAX_LENGTH:
        raise ToolFailure("INVALID_ARGS", f"the URL has {len(url):,} characters; at most {MAX_LENGTH:,} are taken")
    if _UNSAFE.search(url):
        raise ToolFailure(
            "INVALID_ARGS", "the URL holds a space, a backslash or a control character; percent-encode it"
        )
    found = _URL.fullmatch(url)
    if found is None:
        raise ToolFailure("INVALID_ARGS", "the URL is not absolute; it should look like https://api.example.com/path")
    scheme = found["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ToolFailure("NOT_PERMITTED", f"the URL begins with {scheme}:; only http and https may be used")
    host, port = _host_and_port(found["authority"], scheme)
    query = "&".join(part for part in (quote(found["query"] or "", safe=_KEPT), encoded(params or {})) if part)
    path = quote(found["path"] or "/", safe=_KEPT)
    return Target(scheme, host, port, f"{path}?{query}" if query else path)


def encoded(params: Mapping[str, Scalar | Sequence[Scalar]]) -> str:
    """Parameters as a query has them; a list gives its name once per element."""
    pairs: list[str] = []
    for name, value in params.items():
        values = [value] if isinstance(value, str | int | float) else value
        pairs += [f"{quote(name, safe='')}={quote(text(item), safe='')}" for item in values]
    return "&".join(pairs)


def text(value: Scalar) -> str:
    """A single value as text: true and false in JSON's spelling."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def redirected(source: Target, location: str) -> Target:
    """Where a redirect from one target leads. Raises ToolFailure like `parse`, and for one from https to http."""
    if _UNSAFE.search(location):
        raise ToolFailure("NOT_PERMITTED", f"{source.shown} redirects to something that is no URL")
    try:
        target = parse(urljoin(source.url, location))
    except ValueError:
        raise ToolFailure("NOT_PERMITTED", f"{source.shown} redirects to something that is no URL") from None
    except ToolFailure as failure:
        raise ToolFailure("NOT_PERMITTED", f"{source.shown} redirects where it may not: {failure.message}") from None
    if (source.scheme, target.scheme) == ("https", "http"):
        raise ToolFailure("NOT_PERMITTED", f"{source.shown} redirects from https to http, which is not followed")
    return target


def host_name(host: str) -> str:
    """A host name or an address in its one form. ToolFailure NOT_PERMITTED for anything else."""
    if not host.isascii():
        raise ToolFailure("NOT_PERMITTED", "the host has letters beyond a to z; give its ASCII form, which begins xn--")
    name = host.lower()
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise ToolFailure("NOT_PERMITTED", f"{host[:80]!r} is no host name: letters, digits and hyphens between dots")
    if _NUMBER.fullmatch(name.rpartition(".")[2]) and not _is_v4(name):
        raise ToolFailure("NOT_PERMITTED", f"{host[:80]!r} is a number that some take for an address; write the name")
    return name


def _host_and_port(authority: str, scheme: str) -> tuple[str, int]:
    if "@" in authority:
        raise ToolFailure("NOT_PERMITTED", "the URL has a user or password in front of its host; leave them out")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise ToolFailure("NOT_PERMITTED", "the URL has no host that can be read; it should be name or name:port")
    host = _v6(found["v6"]) if found["v6"] else host_name(found["name"])
    port = int(found["port"]) if found["port"] else DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise ToolFailure("INVALID_ARGS", f"the URL has the port {port}; ports are 1 to 65535")
    return host, port


def _v6(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        raise ToolFailure("NOT_PERMITTED", "the URL has something in brackets that is no IPv6 address") from None


def _is_v4(name: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(name)) == name
    except ValueError:
        return False
