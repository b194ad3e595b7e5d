"""What every peer is: something that runs the steps of a recipe."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Protocol

from bench.work import Work

PEERS: Mapping[str, str] = MappingProxyType(
    {
        "surestep": "bench.peers.ours",
        "asyncio": "bench.peers.plain",
        "send": "bench.peers.send",
        "send-sync": "bench.peers.send",
        "task": "bench.peers.task",
        "dbos": "bench.peers.durable",
        "raw": "bench.peers.raw",
    }
)
"""The module of each peer; only the one that is run is imported."""

TITLES: Mapping[str, str] = MappingProxyType(
    {"send": "Send", "send-sync": "Send (sync)", "task": "@task", "dbos": "DBOS"}
)
"""What the others are called in the table."""

POOL_SIZE = 10
"""Connections of each peer that lets its user say how many: Surestep's default."""


class Peer(Protocol):
    """An engine that is open."""

    async def run(self, work: Work) -> None:
        """Run the recipe's steps to their end, as many times at once as it says. Raises where that fails."""

    async def resume(self, work: Work) -> None:
        """Go on with the recipe's run, in which another process was killed."""


def module_of(name: str) -> ModuleType:
    """What the peer needs, imported."""
    return importlib.import_module(PEERS[name])


def open_peer(name: str, url: str, folder: Path, found: Work | None) -> AbstractAsyncContextManager[Peer]:
    """The peer on its own database, which is made ready; `folder` is for its files, `found` the run that it finds."""
    opened: AbstractAsyncContextManager[Peer] = module_of(name).opened(name, url, folder, found)
    return opened
