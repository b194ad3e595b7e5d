"""What a step does, the same in every peer; and what is noted about it from within."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import time
from collections import Counter
from typing import Any

from bench.recipes import Recipe

Span = tuple[int, float, float]
"""A step's number, and the monotonic times in seconds at which one call of it began and ended."""


class FirstTry(Exception):
    """The first try of a step that the recipe says fails."""


class Work:
    """The steps of one recipe, as functions to call. Times are the machine's monotonic clock, alike in all its
    processes."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.tasks = recipe.tasks()
        self.spans: list[Span] = []
        self._tries: Counter[int] = Counter()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._ledger = os.open(recipe.ledger, flags, 0o600) if recipe.ledger else None

    async def perform(self, number: int) -> dict[str, Any]:
        """Do the step's work. Raises FirstTry once where the recipe says so."""
        task, began = self.tasks[number], time.monotonic()
        self._note("begin", number, began)
        if task.seconds:
            await asyncio.sleep(task.seconds)
        ended = time.monotonic()
        self._note("end", number, ended)
        self.spans.append((number, began, ended))
        self._tries[number] += 1
        if task.fails and self._tries[number] == 1:
            raise FirstTry(f"step {number} fails the first time")
        return {"n": number, "payload": payload(number, self.recipe.payload_bytes)}

    def close(self) -> None:
        """Let the ledger go."""
        if self._ledger is not None:
            os.close(self._ledger)

    def _note(self, word: str, number: int, at: float) -> None:
        if self._ledger is not None:
            os.write(self._ledger, f"{word} {number} {at:.6f}\n".encode())


def payload(number: int, size: int) -> str:
    """A result of so many characters that no compression of PostgreSQL's makes smaller."""
    noise = random.Random(number).randbytes(size * 3 // 4 + 3)  # noqa: S311 (nothing is kept secret by it)
    return base64.b64encode(noise).decode()[:size]
