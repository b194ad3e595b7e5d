"""The life of one step run: of a step, or of one child of a `for_each` step (`s3[0]`, `s3[1]`, …)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nodes.state import Verdict
from plans.failure import Failure
from plans.moves import SETTLED, Status, move
from tools.fallbacks import Kind


@dataclass(frozen=True, slots=True)
class Output:
    """Where a step run's result is: never the result itself."""

    output_ref: str
    size: int
    sha256: str
    media_type: str = "application/json"

    def as_stored(self) -> dict[str, Any]:
        """What a journal row says of it: no more than it has to, for there is one of each step."""
        stored: dict[str, Any] = {"output_ref": self.output_ref, "size": self.size}
        if self.output_ref != f"sha256-{self.sha256}":
            stored["sha256"] = self.sha256
        if self.media_type != "application/json":
            stored["media_type"] = self.media_type
        return stored

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Output:
        """From a row, of this version or of the first, which said everything."""
        sha256 = stored.get("sha256") or stored["output_ref"].removeprefix("sha256-")
        return cls(stored["output_ref"], stored["size"], sha256, stored.get("media_type", "application/json"))


@dataclass(frozen=True, slots=True)
class StandIn:
    """How the next attempt is answered without a call of the step's own tool: by its fallback of this name. `refused`
    is the code and the sentence with which it ends instead, before anything is asked."""

    kind: Kind
    label: str
    at_most_s: float = 0.0
    because: str = ""
    refused: tuple[str, str] | None = None

    @classmethod
    def of_row(cls, body: Mapping[str, Any]) -> StandIn | None:
        """From a `fallback` row; None where another tool is simply called. Rows of older versions know no other."""
        kind, refused = body.get("kind", "tool"), body.get("refused")
        if kind == "tool" and refused is None:
            return None
        said = (refused["code"], refused["message"]) if refused else None
        return cls(kind, body["alternative"], body.get("at_most_s", 0.0), body.get("because", ""), said)


@dataclass(frozen=True, slots=True)
class Check:
    """What came out when the plan was asked whether it still holds: after this step, or before it had its effect; who
    has said so; and whose results were looked at. `holds` None: it could not be found out, or nobody was asked."""

    when: Literal["before", "after"]
    by: Literal["expression", "model", "nobody"]
    reason: str
    of: tuple[str, ...]
    holds: bool | None = None

    @property
    def sentence(self) -> str:
        """For people, beside the step."""
        if self.holds is None:
            return f"whether the plan still holds is not known: {self.reason}"
        return f"the plan still holds: {self.reason}" if self.holds else f"the plan does not hold: {self.reason}"

    @classmethod
    def of_row(cls, stored: Mapping[str, Any]) -> Check:
        """From a `check` row, or from what a fork has taken over."""
        return cls(stored["when"], stored["by"], stored["reason"], tuple(stored["of"]), stored["holds"])


@dataclass(slots=True)
class StepRun:
    """What has become of it so far. `in_doubt` is the intent whose outcome is not known; `resend` says that it may be
    sent again; `exhausted` that nothing more will be tried after its failure. `tool` is the alternative that it calls,
    `stand_in` what answers it without a call. `acted` says that its effect may have happened at some time, settled or
    not: nothing takes its place any more. `degraded` says what its result was made by, if not by its tool as asked,
    `mock` that it was made up, `rests_on` which degraded step runs it was made from; `kept_s` how old it was.
    `tainted_by` names what of a stranger's it was made from (`nodes/taint.py`), None where nobody has noted that.
    `check` is the latest look at whether the plan still holds. `unneeded` says that its own condition has left it
    out."""

    status: Status = "pending"
    attempt: int = 0
    first_attempt: int = 1
    tool: str | None = None
    args: dict[str, Any] | None = None
    output: Output | None = None
    failure: Failure | None = None
    verdict: Verdict | None = None
    not_before: float | None = None
    degraded: str | None = None
    mock: bool = False
    rests_on: tuple[str, ...] = ()
    tainted_by: tuple[str, ...] | None = None
    kept_s: float | None = None
    tried: tuple[str, ...] = ()
    stand_in: StandIn | None = None
    acted: bool = False
    in_doubt: dict[str, Any] | None = None
    resend: bool = False
    exhausted: bool = False
    elapsed_s: float = 0.0
    skipped_because: str | None = None
    unneeded: bool = False
    check: Check | None = None

    @property
    def tries(self) -> int:
        """Attempts since the step was last (re)defined."""
        return self.attempt - self.first_attempt + 1

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good: dependents wait for it no longer."""
        return self.status in SETTLED or (self.status == "failed" and self.exhausted)

    @property
    def is_strange(self) -> bool:
        """Whether a stranger may have had a say in its result, or in the words of its failure."""
        return self.failure is not None or (self.output is not None and self.tainted_by != ())

    def moved(self, status: Status) -> None:
        """Make a legal move."""
        self.status = move(self.status, status)

    def gave(self, body: Mapping[str, Any]) -> None:
        """It has given the result that this row names."""
        self.output = Output.from_stored(body["output"])
        self.degraded, self.mock = body.get("degraded"), body.get("mock", False)
        self.rests_on, self.kept_s = tuple(body.get("rests_on", ())), body.get("kept_s")
        tainted_by = body.get("tainted_by")
        self.tainted_by = None if tainted_by is None else tuple(tainted_by)
        self.moved("done")

    def failed(self) -> None:
        """It has failed. Of a kept result that was not there nothing is left: what is tried next calls the tool."""
        if self.stand_in is not None and self.stand_in.kind == "cached":
            self.stand_in = None
        self.moved("failed")


def base_id(unit: str) -> str:
    """`s3` for `s3[0]`, and for `s3` itself."""
    return unit.partition("[")[0]


def child_index(unit: str) -> int | None:
    """0 for `s3[0]`; None for `s3`, which is no child."""
    inside = unit.partition("[")[2]
    return int(inside[:-1]) if inside else None
