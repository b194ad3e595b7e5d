"""Stored plans of other versions: older ones are raised to this one, one function per step; newer ones are read in an
older form where they have one, else refused.

While a new version of the contract is rolled out, its workers write each plan in both versions, so that workers of the
version before can go on with their runs; and only a share of the runs is on the new version at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType

from plans.errors import VersionTooNew
from plans.plan import SCHEMA_VERSION
from plans.values import JSON

Upgrade = Callable[[dict[str, JSON]], dict[str, JSON]]
Downgrade = Callable[[dict[str, JSON]], dict[str, JSON]]

UPGRADES: Mapping[int, Upgrade] = MappingProxyType({})
"""From each version to the next: `UPGRADES[1]` makes a plan of version 1 one of version 2, and a draft, which lacks
what Surestep decides. Pure, and never deleted: plans of every version can be in somebody's archive."""

DOWNGRADES: Mapping[int, Downgrade] = MappingProxyType({})
"""From a version to the one before: `DOWNGRADES[2]` makes a plan of version 2 one of version 1, or raises CannotSay.
One is there as long as workers of the version before may be running: it is deleted in the release after."""

OLDER = "older"
"""Where a stored plan has the same plan in older versions, by version."""
UNSAID = "unsaid"
"""Where it has, by version, why it cannot be said there."""


class CannotSay(ValueError):
    """The version before has no words for this plan. The message says which step uses what."""


@dataclass(frozen=True, slots=True)
class Form:
    """A stored plan as it was read: raised to the newest version, with the version it was written in, and the one that
    it was read in, where that is another."""

    plan: dict[str, JSON]
    written: int
    read: int

    @property
    def fell_back(self) -> bool:
        """Whether what was read is not what the writer has used."""
        return self.read < self.written


@dataclass(frozen=True, slots=True)
class PlanVersions:
    """What one worker knows of the plan contract, and the share of runs, in per cent, that it begins on the newest."""

    newest: int = SCHEMA_VERSION
    upgrades: Mapping[int, Upgrade] = field(default_factory=lambda: UPGRADES)
    downgrades: Mapping[int, Downgrade] = field(default_factory=lambda: DOWNGRADES)
    canary: float = 100.0

    def of_run(self, run_id: str) -> int:
        """The version that this run begins on: the same in every worker with this share, and with a larger one the
        runs of a smaller one stay where they are. Without a way down it is the newest."""
        return self.newest if self.newest not in self.downgrades or place(run_id) < self.canary else self.newest - 1

    def written(self, plan: Mapping[str, JSON], version: int) -> dict[str, JSON]:
        """What of a journal row holds the plan (of this code's form) for a run on this version: the plan in it and, as
        far as there is a way down, in older ones. One that the run's version cannot say is written in the newest."""
        forms, reason = self._forms(plan)
        unsaid: dict[str, JSON] = {} if reason is None else {str(min(forms) - 1): reason}
        first = version if version in forms else self.newest
        older: dict[str, JSON] = {str(each): form for each, form in forms.items() if each < first}
        return {"plan": forms[first], **({OLDER: older} if older else {}), **({UNSAID: unsaid} if unsaid else {})}

    def read(self, row: Mapping[str, JSON]) -> Form:
        """The plan of a journal row in the newest form. Raises VersionTooNew where no form of it is known here."""
        plan = row["plan"]
        if not isinstance(plan, Mapping):
            raise TypeError(f"a row's plan is {type(plan).__name__}")
        written = version_of(plan, self.newest)
        known = {written: plan, **_older(row)}
        readable = [each for each in known if each <= self.newest]
        if not readable:
            raise VersionTooNew(
                f"a newer Surestep has planned this run: its plan has schema_version {written}, and this one reads up "
                f"to {self.newest}{_why(row, self.newest)}. Go on with the newer version; nothing was changed"
            )
        read = max(readable)
        return Form(upgraded(known[read], upgrades=self.upgrades, newest=self.newest), written, read)

    def oldest(self, plan: Mapping[str, JSON]) -> dict[str, JSON]:
        """A plan of this code's form in the oldest version that can say it: what is read once needs no second form."""
        forms, _ = self._forms(plan)
        return forms[min(forms)]

    def _forms(self, plan: Mapping[str, JSON]) -> tuple[dict[int, dict[str, JSON]], str | None]:
        """The plan in every version there is a way down to, step by step, and why there is none to the next. One whose
        plan comes back as another has lost something, and is none."""
        newest: dict[str, JSON] = {**plan, "schema_version": self.newest}
        forms, version = {self.newest: newest}, self.newest
        while (down := self.downgrades.get(version)) is not None:
            try:
                form = {**down(dict(forms[version])), "schema_version": version - 1}
            except CannotSay as reason:
                return forms, str(reason)
            version -= 1
            if upgraded(form, upgrades=self.upgrades, newest=self.newest) != newest:
                return forms, f"it does not come back from version {version} as it was"
            forms[version] = form
        return forms, None


PLAN_VERSIONS = PlanVersions()
"""What this code knows, with every run on the newest version."""


def place(run_id: str) -> float:
    """Where a run stands among all, from 0 up to 100: by the hash of its id, evenly."""
    return int.from_bytes(sha256(run_id.encode("utf-8")).digest()[:8], "big") / 2**64 * 100


def version_of(plan: Mapping[str, JSON], newest: int) -> int:
    """The version that a plan says it has; the newest where it says none. ValueError for one that cannot be."""
    version = plan.get("schema_version", newest)
    if isinstance(version, bool) or not isinstance(version, int):
        raise ValueError(f"is {version!r}; expected a whole number from 1 to {newest}"[:200])  # noqa: TRY004  # a fault
    return version


def upgraded(
    stored: Mapping[str, JSON], *, upgrades: Mapping[int, Upgrade] = UPGRADES, newest: int = SCHEMA_VERSION
) -> dict[str, JSON]:
    """A stored plan in the form of the newest version; without a `schema_version` it has that form.

    Raises VersionTooNew for one that this code does not know yet, ValueError for a version that never was.
    """
    plan = dict(stored)
    version = version_of(plan, newest)
    if version > newest:
        raise VersionTooNew(
            f"the plan was stored by a newer Surestep: it has schema_version {version}, this one reads up to {newest}. "
            "Upgrade Surestep, or write the plan again"
        )
    while version < newest:
        if version not in upgrades:
            raise ValueError(f"is {version}; no Surestep ever wrote that. Expected 1 to {newest}")
        plan = upgrades[version](plan)
        version += 1
    return {**plan, "schema_version": newest}


def _older(row: Mapping[str, JSON]) -> dict[int, Mapping[str, JSON]]:
    forms = row.get(OLDER)
    return {int(version): form for version, form in forms.items()} if isinstance(forms, Mapping) else {}


def _why(row: Mapping[str, JSON], newest: int) -> str:
    unsaid = row.get(UNSAID)
    reason = unsaid.get(str(newest)) if isinstance(unsaid, Mapping) else None
    return f", and version {newest} cannot say it: {reason}" if reason else ""
