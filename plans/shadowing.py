"""How often a candidate has agreed with the tool it shadows: values that are added up, here and in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

AGREEMENTS = 100
"""How often in a row a candidate has to agree before it is promoted, unless another number is said."""
KEPT_DIFFERENCES = 20
"""How many differences of a pair are kept, the latest."""


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A tool and its candidate. `edition` names what is compared by what: both versions and the comparison. Another
    edition starts to count from nothing."""

    tool: str
    candidate: str
    edition: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One call whose results were not the same: the hash of its arguments, and the places that differ, without what
    stands there."""

    args_sha256: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Calls that were compared. `in_a_row` are those that agreed since the last one that did not; `broken` says whether
    there was one, so that what was in a row before these calls no longer is."""

    agreed: int = 0
    differed: int = 0
    failed: int = 0
    in_a_row: int = 0
    broken: bool = False
    differences: tuple[Difference, ...] = ()

    def then(self, later: Agreement) -> Agreement:
        """These calls, and after them those."""
        return Agreement(
            self.agreed + later.agreed,
            self.differed + later.differed,
            self.failed + later.failed,
            later.in_a_row if later.broken else self.in_a_row + later.in_a_row,
            self.broken or later.broken,
            (*self.differences, *later.differences)[-KEPT_DIFFERENCES:],
        )

    @property
    def calls(self) -> int:
        """How many calls were compared."""
        return self.agreed + self.differed + self.failed


AGREED = Agreement(agreed=1, in_a_row=1)


def differed(args_sha256: str, places: Sequence[str]) -> Agreement:
    """One call with another result."""
    return Agreement(differed=1, broken=True, differences=(Difference(args_sha256, tuple(places)),))


def failed(args_sha256: str, code: str) -> Agreement:
    """One call that the candidate failed, and the tool did not."""
    return replace(differed(args_sha256, [f"failed: {code}"]), differed=0, failed=1)
