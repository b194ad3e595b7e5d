"""Results of a run that its next steps will probably read, kept in memory up to a size."""

from __future__ import annotations

from collections import OrderedDict

from plans.values import JSON

KEPT_BYTES = 64 * 1024 * 1024
"""How much of a run's results is kept in memory for its next steps; the rest is read again when needed."""


class AtHand:
    """The results used last, by reference."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[JSON, int]] = OrderedDict()
        self._kept = 0

    def get(self, reference: str) -> tuple[JSON, int] | None:
        """A result with its size in bytes, if it is at hand."""
        if reference in self._values:
            self._values.move_to_end(reference)
        return self._values.get(reference)

    def keep(self, reference: str, value: JSON, size: int) -> None:
        """Keep a result of this many bytes; those that were not used for longest go when they are too many."""
        if reference not in self._values:
            self._values[reference] = (value, size)
            self._kept += size
        while self._kept > KEPT_BYTES and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._kept -= dropped
