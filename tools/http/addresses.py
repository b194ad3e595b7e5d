"""Which addresses of the internet protocol are somebody's public server, and what the others are."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# From IANA's registries of special-purpose addresses, read 2026-11; the library's own `is_global` differs from one
# release of Python to the next and lets 6to4 and NAT64 pass.
_SPECIAL: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "an address of this machine"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "an address inside a provider's network"),
    ("127.0.0.0/8", "an address of this machine"),
    ("168.63.129.16/32", "a cloud's metadata service"),
    ("169.254.0.0/16", "a link-local address, as of a cloud's metadata service"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "a reserved address"),
    ("192.88.99.0/24", "a relay's address"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "a reserved address"),
    ("198.51.100.0/24", "a reserved address"),
    ("203.0.113.0/24", "a reserved address"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
    ("::/128", "an address of this machine"),
    ("::1/128", "an address of this machine"),
    ("::ffff:0:0/96", "an IPv4 address in the form of IPv6"),
    ("::/96", "an IPv4 address in the form of IPv6"),
    ("64:ff9b::/96", "an IPv4 address behind NAT64"),
    ("64:ff9b:1::/48", "an IPv4 address behind NAT64"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "a reserved address"),
    ("2002::/16", "an IPv4 address behind 6to4"),
    ("3fff::/20", "a reserved address"),
    ("fc00::/7", "a private address"),
    ("fe80::/10", "a link-local address"),
    ("ff00::/8", "a multicast address"),
)
_NETWORKS: tuple[tuple[Network, str], ...] = tuple((ipaddress.ip_network(text), what) for text, what in _SPECIAL)
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_NEVER: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("0.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "224.0.0.0/4", "::/128", "fe80::/10", "ff00::/8",
                 "fd00:ec2::254/128", "100.100.100.200/32", "192.0.0.192/32")
)  # fmt: skip
_NEVER_EMBEDDED: tuple[Network, ...] = tuple(
    ipaddress.IPv6Network(
        (int(form.network_address) | int(never.network_address) << shift, form.prefixlen + never.prefixlen)
    )
    for form, shift in ((ipaddress.IPv6Network("::ffff:0:0/96"), 0), (ipaddress.IPv6Network("::/96"), 0),
                        (ipaddress.IPv6Network("64:ff9b::/96"), 0), (ipaddress.IPv6Network("2002::/16"), 80))
    for never in _NEVER if never.version == 4 and int(never.network_address) > 0
)  # fmt: skip
"""The same in the forms of IPv6 that stand for addresses of IPv4."""


def not_public(address: Address) -> str | None:
    """What an address is that is not a public server's; None for one that is."""
    for network, what in _NETWORKS:
        if address in network:
            return what
    if address.version == 6 and address not in _PUBLIC_V6:
        return "a reserved address"
    return None


def never_allowed(network: Network) -> bool:
    """Whether it holds addresses that no configuration can allow: metadata services, link-local, multicast, any."""
    return any(network.version == never.version and network.overlaps(never) for never in (*_NEVER, *_NEVER_EMBEDDED))
