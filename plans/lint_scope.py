"""What the checks of a plan look at: the draft, the tools, what else may be named, and where each step stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from plans.faults import Fault, FaultCode, Severity
from plans.limits import Limits
from plans.plan import PlanDraft, Risk, StepDraft
from plans.schedule import edges_of
from plans.values import JSON, Path, dotted


class ToolView(Protocol):
    """What planning must know of a tool."""

    @property
    def name(self) -> str:
        """The name that plans use."""
        ...

    @property
    def effect(self) -> str:
        """What it does to the world."""
        ...

    @property
    def risk(self) -> Risk:
        """The risk of a step that calls it."""
        ...

    @property
    def enabled(self) -> bool:
        """Whether it may be used now."""
        ...

    @property
    def to_configure(self) -> str | None:
        """What has to be set before it can be called; None: nothing."""
        ...

    @property
    def output_schema(self) -> dict[str, JSON] | None:
        """JSON schema of its result, if it declares one."""
        ...

    def check_args(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[tuple[str, str]]:
        """Every problem as (place, sentence); a place at or under a reference has none."""
        ...

    def breaches(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> Sequence[tuple[str, str]]:
        """Its rules that such arguments break for certain, as (argument, sentence)."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """Tools that can tell why one is not among them."""

    def why_absent(self, name: str) -> str | None:
        """Why a tool of this name is not there; None: nobody knows of one."""
        ...


Permits = Callable[[ToolView], bool]
Placed = tuple[int, StepDraft]


@dataclass(frozen=True)
class Scope:
    """One draft and everything it is checked against.

    `positions` says where each step stands in the plan as it was written; `unread` names steps that were written but
    are broken ("" for one without a name): nothing is said about references to them. `inputs` None: not known yet.
    `found` are paths that lead to something, by what a result looks like.
    """

    draft: PlanDraft
    tools: Mapping[str, ToolView]
    inputs: Collection[str] | None
    limits: Limits
    permits: Permits | None
    positions: Sequence[int]
    unread: frozenset[str] = frozenset()
    found: set[tuple[str, bool, str]] = field(default_factory=set)

    @property
    def placed(self) -> Iterator[Placed]:
        """The steps, each with its position."""
        return zip(self.positions, self.draft.steps, strict=True)

    @cached_property
    def steps(self) -> dict[str, StepDraft]:
        """The steps by id; of several with one id the first."""
        found: dict[str, StepDraft] = {}
        for step in self.draft.steps:
            found.setdefault(step.id, step)
        return found

    @cached_property
    def callers(self) -> dict[str, list[str]]:
        """For each tool the steps that call it."""
        found: dict[str, list[str]] = {}
        for step in self.steps.values():
            if step.tool:
                found.setdefault(step.tool, []).append(step.id)
        return found

    @cached_property
    def edges(self) -> dict[str, tuple[str, ...]]:
        """What each step waits for."""
        return edges_of(self.steps.values())

    def tool(self, step: StepDraft) -> ToolView | None:
        """The tool that a step calls, if there is one."""
        return self.tools.get(step.tool) if step.action == "tool" and step.tool else None

    def why_absent(self, name: str) -> str | None:
        """Why a tool that may exist is not there now, where that is known."""
        return self.tools.why_absent(name) if isinstance(self.tools, Explaining) else None

    def unreadable(self, name: str) -> bool:
        """Whether a name that is not among the steps may be one of a broken step."""
        return name in self.unread or "" in self.unread


def fault(
    code: FaultCode,
    message: str,
    at: tuple[int, StepDraft] | None = None,
    path: Path = (),
    *,
    fix: str | None = None,
    severity: Severity = "error",
) -> Fault:
    """A fault of a step (`path` begins at the step) or of the plan as a whole."""
    where = ("steps", at[0], *path) if at else path
    step = at[1].id if at else None
    return Fault(code=code, step=step, path=dotted(where), message=message, fix=fix, severity=severity)
