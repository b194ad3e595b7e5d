"""Which hosts may be reached, and at which addresses: what a person has configured, and nothing else."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from plans.failure import ToolFailure
from plans.wording import listed
from tools.http.addresses import Address, Network, never_allowed, not_public
from tools.http.urls import DEFAULT_PORTS, Target, host_name

T = TypeVar("T")
_ENTRY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/@\s]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A name, or with `below` every name that ends in `.name`. Without a port, the usual one of http and https."""

    name: str
    below: bool = False
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{'*.' if self.below else ''}{name}{f':{self.port}' if self.port else ''}"

    def covers(self, target: Target) -> bool:
        """Whether this allows the target's host and port."""
        port = DEFAULT_PORTS[target.scheme] if self.port is None else self.port
        return self.names(target) and target.port == port

    def names(self, target: Target) -> bool:
        """Whether this allows the target's host, if perhaps not at its port."""
        return target.host.endswith(f".{self.name}") if self.below else target.host == self.name


@dataclass(frozen=True)
class Hosts:
    """`private` holds, by exact name, the addresses that are not public and that this name may have all the same.
    `setting` is what to tell somebody who wants more."""

    allowed: tuple[HostPattern, ...] = ()
    private: Mapping[str, tuple[Network, ...]] = field(default_factory=dict)
    setting: str = "http_hosts (SURESTEP_HTTP_HOSTS)"

    def check(self, target: Target) -> None:
        """ToolFailure NOT_PERMITTED for a host or port that nobody has allowed."""
        if any(pattern.covers(target) for pattern in self.allowed):
            return
        port = f" (port {target.port} is not)" if any(pattern.names(target) for pattern in self.allowed) else ""
        raise ToolFailure(
            "NOT_PERMITTED",
            f"{target.authority} may not be reached; allowed are {listed([str(p) for p in self.allowed])}{port}. "
            f"More can be allowed by {self.setting}",
        )

    def checked(self, host: str, found: Iterable[str]) -> list[Address]:
        """The addresses of a host, if each of them may be connected to; else ToolFailure NOT_PERMITTED."""
        addresses = list(dict.fromkeys(_address(host, text) for text in found))
        for address in addresses:
            what = not_public(address)
            if what is not None and not any(address in network for network in self.private.get(host, ())):
                raise ToolFailure(
                    "NOT_PERMITTED",
                    f"{host} is at {what}, which is refused; an internal service is allowed by "
                    "http_private_hosts (SURESTEP_HTTP_PRIVATE_HOSTS), as name=address",
                )
        return addresses


def patterns(entries: Sequence[str]) -> tuple[HostPattern, ...]:
    """From `api.example.com`, `*.example.com` or `example.com:8443`. ValueError says what is wrong with which."""
    return tuple(_each(_pattern, entries))


def private_addresses(entries: Sequence[str]) -> dict[str, tuple[Network, ...]]:
    """From `name=address` or `name=network`, a name as often as it has addresses. ValueError as for `patterns`."""
    found: dict[str, tuple[Network, ...]] = {}
    for host, network in _each(_private_address, entries):
        found[host] = (*found.get(host, ()), network)
    return found


def _each(read: Callable[[str], T], entries: Sequence[str]) -> list[T]:
    """Each entry as it is read. ValueError says what is wrong with all of them."""
    found, faults = list[T](), list[str]()
    for entry in entries:
        try:
            found.append(read(entry))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ValueError("; ".join(faults))
    return found


def _private_address(entry: str) -> tuple[str, Network]:
    name, equals, where = entry.partition("=")
    if not equals:
        raise ValueError(f"{entry!r} should be name=address, such as intranet.example.com=10.0.0.5")
    return _name(name.strip(), entry), _network(where.strip(), entry)


def _pattern(entry: str) -> HostPattern:
    if "://" in entry or "/" in entry:
        raise ValueError(f"{entry!r} should be a host alone, without https:// and without a path")
    read = _ENTRY.fullmatch(entry)
    if read is None:
        raise ValueError(f"{entry!r} should be a host, such as api.example.com, *.example.com or example.com:8443")
    below = read["host"].startswith("*.")
    name = _name(read["host"].removeprefix("*."), entry)
    if below and "." not in name:
        raise ValueError(f"{entry!r} would allow every host below {name!r}; name at least two parts behind the *")
    if read["port"] and not 1 <= int(read["port"]) <= 65_535:
        raise ValueError(f"{entry!r} has a port that is not in 1 to 65535")
    return HostPattern(name, below, int(read["port"]) if read["port"] else None)


def _name(name: str, entry: str) -> str:
    try:
        if name.startswith("[") and name.endswith("]"):
            return str(ipaddress.IPv6Address(name[1:-1]))
        return host_name(name)
    except (ValueError, ToolFailure) as error:
        raise ValueError(f"{entry!r}: {error}") from None


def _network(text: str, entry: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(f"{entry!r}: {text!r} is no address and no network, such as 10.0.0.5 or 10.0.0.0/24") from None
    if never_allowed(network):
        raise ValueError(f"{entry!r}: metadata services, link-local and multicast addresses cannot be allowed")
    return network


def _address(host: str, text: str) -> Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:  # an IPv6 address with the name of an interface behind it, which only this machine knows
        raise ToolFailure("NOT_PERMITTED", f"{host} is at an address of this machine's own network") from None
