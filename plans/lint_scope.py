"""What the checks of a plan look at: the draft, the tools, what else may be named, and where each step stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from plans.faults import Fault, FaultCode, Severity
from plans.limits import Limits
from plans.plan import PlanDraft, Risk, StepDraft, implied_steps
from plans.references import Located, located
from plans.texts import texts_with
from plans.values import JSON, Path, dotted
from plans.wording import listed, nearest


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

    @property
    def timeout_s(self) -> float:
        """The time that one call may take, in seconds."""
        ...

    @property
    def can_undo(self) -> bool:
        """Whether it declares how its effect is taken back."""
        ...

    def least_s(self, calls: int) -> float:
        """The least time that so many calls take by its own rate limit, in seconds."""
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


READING = ("args", "instruction", "for_each")
"""The fields of a step that may hold references."""

Text = tuple[Path, str]
Permits = Callable[[ToolView], bool]
Placed = tuple[int, StepDraft]


@dataclass(frozen=True)
class Scope:
    """One draft and everything it is checked against.

    `positions` says where each step stands in the plan as it was written; `doubtful` are places within a step (by its
    position) that could not be read, of which nothing is said; `nameless`, that some step's id could not; `storable`,
    that the reader has judged depth and characters. `inputs` None: not known yet. `found` are paths that lead to
    something, by what a result looks like.
    """

    draft: PlanDraft
    tools: Mapping[str, ToolView]
    inputs: Collection[str] | None
    limits: Limits
    permits: Permits | None
    positions: Sequence[int]
    doubtful: Mapping[int, frozenset[Path]] = field(default_factory=dict)
    nameless: bool = False
    storable: bool = False
    found: set[tuple[str, bool, str]] = field(default_factory=set)

    @property
    def placed(self) -> Iterator[Placed]:
        """The steps, each with its position."""
        return zip(self.positions, self.draft.steps, strict=True)

    @cached_property
    def steps(self) -> dict[str, StepDraft]:
        """The steps by id; of several with one id the first. One whose id could not be read is none of them."""
        found: dict[str, StepDraft] = {}
        for step in self.draft.steps:
            if step.id:
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
        found: dict[str, tuple[str, ...]] = {}
        for at in self.placed:
            if (step := at[1]).id and step.id not in found:
                references = [place[2] for field in READING for place in self.reads(at, field)]
                found[step.id] = tuple(dict.fromkeys((*step.depends_on, *implied_steps(step, references))))
        return found

    def loops(self, at: Placed) -> bool:
        """Whether a step has, or may have, an element of its own."""
        return at[1].for_each is not None or self.doubts(at, "for_each")

    def step_meant(self, name: str) -> str:
        """What a reference to an unknown step was probably to name."""
        if callers := self.callers.get(name):
            steps = listed([f"${{{caller}}}" for caller in callers])
            return f"{name} is a tool; the step that calls it is {steps}"
        meant = nearest(name, self.steps)
        return f"did you mean ${{{meant}}}?" if meant else f"the steps are {listed(self.steps)}"

    def texts(self, at: Placed, field: str) -> Sequence[Text]:
        """The texts in one field of a step that may hold a reference, or what looks like one; looked for once."""
        return self._texts[at[0]].get(field, ())

    def reads(self, at: Placed, field: str) -> Sequence[Located]:
        """The references in one field of a step, as `located` gives them; looked for once."""
        return self._reads[at[0]].get(field, ())

    @cached_property
    def _texts(self) -> dict[int, dict[str, list[Text]]]:
        return {
            position: {field: texts_in(value) for field in READING if (value := getattr(step, field))}
            for position, step in self.placed
        }

    @cached_property
    def _reads(self) -> dict[int, dict[str, list[Located]]]:
        return {
            position: {
                field: [found for path, text in texts for found in located(text, path)]
                for field, texts in fields.items()
            }
            for position, fields in self._texts.items()
        }

    @cached_property
    def unclear(self) -> frozenset[str]:
        """Steps of whose results nothing can be said, because what makes them could not be read."""
        made_by = ("action", "tool", "output_schema", "for_each")
        return frozenset(at[1].id for at in self.placed if self.doubtful and self.doubts(at, *made_by))

    def tool(self, step: StepDraft) -> ToolView | None:
        """The tool that a step calls, if there is one."""
        return self.tools.get(step.tool) if step.action == "tool" and step.tool else None

    def why_absent(self, name: str) -> str | None:
        """Why a tool that may exist is not there now, where that is known."""
        return self.tools.why_absent(name) if isinstance(self.tools, Explaining) else None

    def doubts(self, at: Placed, *names: str) -> bool:
        """Whether one of these fields of a step could not be read."""
        places = self.doubtful.get(at[0])
        return places is not None and any((name,) in places for name in names)


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
    step = at[1].id or None if at else None
    return Fault(code=code, step=step, path=dotted(where), message=message, fix=fix, severity=severity)


def texts_in(value: JSON) -> list[Text]:
    """The texts in a value that hold a brace, each with its place."""
    return texts_with("{", value)
