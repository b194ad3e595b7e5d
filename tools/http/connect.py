"""The one door to the network: a name is looked up, its addresses are checked, and one of these very addresses is
connected to. Nobody looks the name up a second time, and TLS goes on to verify the name."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import httpcore

from plans.failure import ToolFailure
from tools.http.addresses import Address
from tools.http.hosts import Hosts
from tools.isolation import POOL

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses of a name as the system knows them. Raises socket.gaierror.

    It runs in the tools' own bounded pool: asyncio's few threads are everybody's, and a look-up may hang for long.
    """
    found, error = await POOL.submit("look-up of names", partial(socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM))
    if error is not None:
        raise error
    return [entry[4][0] for entry in found]


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connections to allowed addresses only. Environment variables for proxies mean nothing here: a proxy would look
    the name up by itself, behind the check."""

    def __init__(self, hosts: Hosts, resolve: Resolver = system_resolver) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def addresses(self, host: str, port: int) -> list[Address]:
        """The addresses that may be connected to. ToolFailure NOT_PERMITTED if one of them may not, UNAVAILABLE where
        the name has none."""
        try:
            found: Sequence[str] = [str(ipaddress.ip_address(host))]
        except ValueError:
            try:
                found = await self._resolve(host, port)
            except (OSError, UnicodeError):
                found = ()
        if not found:
            raise ToolFailure("UNAVAILABLE", f"the name {host} could not be found")
        return self._hosts.checked(host, found)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that answers."""
        addresses = await self.addresses(host, port)
        share = None if timeout is None else timeout / len(addresses)
        while True:
            address = addresses.pop(0)
            try:
                return await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise

    async def sleep(self, seconds: float) -> None:
        """As httpcore waits between its own retries, of which there are none here."""
        await self._network.sleep(seconds)
