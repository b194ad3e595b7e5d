"""What people may do about tools while runs go on: look at them, change their settings, and see who has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoints.failed_calls import PostgresFailures
from checkpoints.shadow_counts import NotedDifference, PostgresShadows
from checkpoints.tool_settings import PostgresSettings, Stored, ToolChange
from checkpoints.tool_stores import PostgresBreakers
from graph.given import check_id
from graph.tool_standing import Told, ToolStanding, standing_of
from plans.errors import InvalidInput, PromotionRefused, UnknownTool, UsageError
from plans.shadowing import AGREEMENTS, Agreement
from plans.values import JSON, unclean
from plans.wording import listed, nearest
from tools.breaker import close_circuit
from tools.ports import BreakerStore, Clock, Ports
from tools.settings import ANSWERED_BY, Flat, fault_of_name, faults_in, flattened, merged, nested, with_changes
from tools.shadows import pair_of

if TYPE_CHECKING:
    from checkpoints.database import Database
    from tools.registry import Registry
    from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change has made of a tool's settings: those that differ, by name, from what and to what. A setting that
    is missing on one side is there as declared. `forgiven` counts calls that had failed, and that may be made again at
    once; `closed` says that a breaker was open, and is closed now."""

    tool: str
    before: Flat
    after: Flat
    forgiven: int = 0
    closed: bool = False

    @classmethod
    def of(cls, tool: str, before: Mapping[str, JSON], after: Mapping[str, JSON]) -> Changed:
        """The difference between two stored settings."""
        was, becomes = flattened(before), flattened(after)
        return cls(
            tool,
            {name: value for name, value in was.items() if (name, value) not in becomes.items()},
            {name: value for name, value in becomes.items() if (name, value) not in was.items()},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that differ."""
        return tuple({**self.before, **self.after})

    def as_json(self) -> dict[str, JSON]:
        """Each setting with `before` and `after`; the one that is missing is as declared."""
        sides = (("before", self.before), ("after", self.after))
        return {name: {side: flat[name] for side, flat in sides if name in flat} for name in self.names}


class ToolSettings:
    """The settings of these tools on this database. What is changed here, the workers follow within two seconds."""

    def __init__(self, registry: Registry, database: Database, *, ports: Ports | None = None) -> None:
        """`ports` are those of this process's own engine, if it has one: it follows at once."""
        self._registry = registry
        self._shadows = PostgresShadows(database)
        own = ports.settings if ports is not None else None
        self._settings = own if isinstance(own, PostgresSettings) else PostgresSettings(database)
        self._breakers: BreakerStore = ports.breakers if ports is not None else PostgresBreakers(database)
        failures = ports.failures if ports is not None else None
        self._failures = failures if isinstance(failures, PostgresFailures) else PostgresFailures(database)
        self._clock = ports.clock if ports is not None else Clock()

    async def set(
        self, tool: str, changes: Mapping[str, JSON], *, unset: Sequence[str] = (), by: str = "library"
    ) -> Changed:
        """Change settings of a tool, named like `timeout_s` or `retry.max_attempts`; those in `unset` are as declared
        again. Checked before anything is stored. Raises UnknownTool, and InvalidInput with every fault at once."""
        new = flattened(changes)
        declared = self._registry.declared.get(tool)
        if declared is None:
            raise self._unknown(tool, [fault for name in (*new, *unset) if (fault := fault_of_name(name))])

        def change(before: Stored) -> Stored:
            flat = flattened(before)
            after = merged(flat, new, unset)
            unsaid = [fault for name in unset if name not in flat and (fault := fault_of_name(name))]
            if found := unsaid + _faults(declared, before, new, after):
                raise _refusal(tool, found)
            return nested(after)

        return await self._stored(tool, change, by)

    async def enable(self, tool: str, *, by: str = "library") -> Changed:
        """Switch a tool on, close its breaker, and let calls of it be made again that were not because they had failed
        again and again. Raises UnknownTool."""
        declared = self._registry.declared.get(tool)
        if declared is not None and declared.enabled:
            changed = await self.set(tool, {}, unset=["enabled"], by=by)
        else:
            changed = await self.set(tool, {"enabled": True}, by=by)
        closed = await close_circuit(self._breakers, tool)
        return replace(changed, forgiven=await self._failures.forget(tool), closed=closed)

    async def disable(self, tool: str, *, by: str = "library") -> Changed:
        """Switch a tool off: its next start is refused, and goes to its fallback. Raises UnknownTool."""
        return await self.set(tool, {"enabled": False}, by=by)

    async def promote(self, candidate: str, *, after: int = AGREEMENTS, by: str = "library") -> Changed:
        """Have the candidate answer the calls of the tool that it shadows, if it has agreed `after` times in a row. The
        former tool becomes its shadow. Raises PromotionRefused with the counts, InvalidInput for what is no candidate
        or is switched off, and UnknownTool."""
        tool = self._shadowed(candidate)
        standing = (await self.standing())[candidate]
        if not standing.now.tool.enabled:
            raise InvalidInput(f"{candidate} is switched off; switch it on first (surestep tools enable {candidate})")
        found = standing.agreement
        if found.in_a_row < after and not standing.answers:
            raise PromotionRefused(
                f"{candidate} was not promoted: it has agreed {found.in_a_row} times in a row with {tool.name}, and "
                f"{after} are needed. Of {found.calls} compared calls {found.agreed} agreed, {found.differed} differed "
                f"and {found.failed} failed"
            )
        return await self._stored(tool.name, lambda before: {**before, ANSWERED_BY: candidate}, by)

    async def demote(self, candidate: str, *, by: str = "library") -> Changed:
        """Have the tool answer its calls itself again; the candidate has to agree anew. Raises UnknownTool, and
        InvalidInput for what is no candidate."""
        tool = self._shadowed(candidate)

        def change(before: Stored) -> Stored:
            return {name: value for name, value in before.items() if (name, value) != (ANSWERED_BY, candidate)}

        changed = await self._stored(tool.name, change, by)
        if changed.names:
            await self._shadows.break_row(pair_of(tool, self._registry.declared[candidate]))
        return changed

    async def differences(self, candidate: str) -> list[NotedDifference]:
        """The last calls on which a candidate did not agree, the newest first. Raises UnknownTool, InvalidInput."""
        return await self._shadows.differences(self._shadowed(candidate).name, candidate)

    async def reset(self, tool: str, *, by: str = "library") -> Changed:
        """Everything about the tool as it is declared, a promotion too. Also for one that is not there any more.
        Raises UnknownTool."""
        if tool not in self._registry.declared and tool not in await self._settings.get_all():
            raise self._unknown(tool)
        return await self._stored(tool, lambda _: {}, by)

    async def _stored(self, tool: str, change: Callable[[Stored], Stored], by: str) -> Changed:
        who = check_id(by, "who changes it (by)")
        return Changed.of(tool, *await self._settings.change(tool, change, who))

    async def history(self, tool: str | None = None, limit: int | None = None) -> list[ToolChange]:
        """What was changed, of one tool or of all, the newest first. Raises UnknownTool for one that is neither there
        nor in the record."""
        found = [] if tool is not None and any(unclean(tool)) else await self._settings.history(tool, limit)
        if tool is not None and not found and tool not in self._registry.declared:
            raise self._unknown(tool)
        return found

    async def standing(self) -> dict[str, ToolStanding]:
        """How each declared tool stands, by name."""
        stored, breakers = await self._settings.get_all(), await self._breakers.load_all()
        history, counts = await self._settings.history(), await self._shadows.counts()
        found = {}
        for name, tool in self._registry.declared.items():
            shadow = self._registry.shadows.get(name)
            of = self._registry.declared[tool.spec.shadow_of] if tool.spec.shadow_of else None
            answers = of is not None and stored.get(of.name, {}).get(ANSWERED_BY) == name
            told = Told(
                stored.get(name, {}),
                history,
                breakers.get(name),
                candidate=shadow.name if shadow else None,
                agreement=counts.get(pair_of(of, tool), Agreement()) if of else Agreement(),
                answers=answers,
            )
            found[name] = standing_of(tool, told, self._clock.wall())
        return found

    async def strangers(self) -> dict[str, Flat]:
        """What is stored about tools that are not declared here."""
        stored = await self._settings.get_all()
        return {name: flattened(flat) for name, flat in stored.items() if flat and name not in self._registry.declared}

    def _shadowed(self, candidate: str) -> Tool:
        """The tool that a candidate shadows."""
        found = self._registry.declared.get(candidate)
        if found is None:
            raise self._unknown(candidate)
        if found.spec.shadow_of is None:
            its = self._registry.shadows.get(candidate)
            meant = f"; its candidate is {its.name}" if its else ""
            raise InvalidInput(f"{candidate} is no candidate: it is declared as the shadow of no other tool{meant}")
        return self._registry.declared[found.spec.shadow_of]

    def _unknown(self, name: str, more: Sequence[str] = ()) -> UsageError:
        close = nearest(name, self._registry.declared)
        meant = f"did you mean {close}?" if close else f"registered: {listed(self._registry.declared, 30)}"
        said = f"there is no tool {name!r}; {meant}"
        return _refusal(name, [said, *more]) if more else UnknownTool(said)


def _faults(tool: Tool, before: Mapping[str, JSON], new: Flat, after: Flat) -> list[str]:
    """What is wrong with a change. What was stored before and is ignored by now is nobody's fault who changes another
    setting."""
    ignored = with_changes(tool, before).ignored or {}
    judged = {name: value for name, value in after.items() if name in new or name not in ignored}
    if ANSWERED_BY not in new:
        judged.pop(ANSWERED_BY, None)
    return faults_in(tool, judged)


def _refusal(tool: str, faults: Sequence[str]) -> InvalidInput:
    told = f": {faults[0]}" if len(faults) == 1 else ":" + "".join(f"\n- {fault}" for fault in faults)
    return InvalidInput(f"nothing was changed about {tool}{told}")
