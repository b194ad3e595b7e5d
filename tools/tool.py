"""One tool: what it declares, what it accepts, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plans.failure import Failure, ToolFailure
from plans.values import JSON, Path, dotted
from tools import isolation
from tools.breaches import Breach, breaches, judgeable
from tools.callee import Callee
from tools.context import ToolContext
from tools.error_flags import refuse_empty, refuse_flagged
from tools.output import Result
from tools.schema import Arguments
from tools.secret_arguments import secret_arguments
from tools.spec import Effect, Risk, ToolSpec

if TYPE_CHECKING:
    from tools.ports import Ports

Undo = Callable[..., Any]
Probe = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Tool:
    """A callable with everything that is needed to plan, check and safeguard its calls.

    `probe(key)` says what became of an effect with that idempotency key: its result if it has happened, None if it has
    not; it raises if it cannot tell. `undo` takes an effect back. Both may be missing. `toolkit` is the name of the
    toolkit that it belongs to.
    """

    spec: ToolSpec
    arguments: Arguments
    result: Result
    callee: Callee
    toolkit: str = ""
    enabled: bool = True
    undo: Undo | None = None
    probe: Probe | None = None

    @property
    def name(self) -> str:
        """The name that plans use."""
        return self.spec.name

    @property
    def description(self) -> str:
        """What planners read."""
        return self.spec.description

    @property
    def effect(self) -> Effect:
        """What it does to the world."""
        return self.spec.effect

    @property
    def risk(self) -> Risk:
        """The risk of a step that calls it, before any policy."""
        return self.spec.risk

    @property
    def to_configure(self) -> str | None:
        """What has to be set before it can be called; None: nothing."""
        return self.spec.to_configure

    @property
    def timeout_s(self) -> float:
        """The time that one call may take, in seconds."""
        return self.spec.timeout_s

    @property
    def can_undo(self) -> bool:
        """Whether it declares how its effect is taken back."""
        return self.undo is not None

    def least_s(self, calls: int) -> float:
        """The least time that so many calls take by its rate limit, in seconds; 0 where answers may be kept ones."""
        limit = self.spec.rate_limit
        return 0.0 if limit is None or self.spec.cache_ttl_s else (calls - 1) // limit.calls * limit.per_s

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return self.arguments.schema

    @cached_property
    def secret_args(self) -> frozenset[str]:
        """The arguments whose values stand nowhere but in the call."""
        return secret_arguments(self.spec.secret_args, self.input_schema)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON schema of the result; None where nothing is declared."""
        return self.result.schema

    def check_args(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[tuple[str, str]]:
        """Every problem of the arguments at once, as (place, sentence). Typing is JSON's, strictly: 3 is no string,
        "5" no integer, 1 no boolean; a date is a string. `references` are places whose value is not known yet: no
        problem at or under them is reported, except that an argument is missing or unknown."""
        taken = [name for name in args if name == self.callee.context]
        reserved = [(name, "is not an argument: the run puts its own context there") for name in taken]
        given = {name: value for name, value in args.items() if name not in taken}
        return reserved + [(dotted(path), said) for path, said in self.arguments.problems(given, references)]

    def breaches(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[Breach]:
        """The rules that these arguments break. Decimals count as numbers, however they are written. With `references`,
        only those that can be judged by the other arguments."""
        rules = self.spec.rules
        if not rules:
            return []
        if not references:
            return list(breaches(self.name, rules, self.arguments.comparable(args)))
        unknown = {path[0] for path in references if path}
        literal = {name: value for name, value in args.items() if name not in unknown}
        return list(breaches(self.name, [rule for rule in rules if judgeable(rule, literal)], literal))

    async def invoke(self, args: Mapping[str, JSON], ctx: ToolContext) -> JSON:
        """Call the function with resolved arguments and give its result as JSON. Nothing is retried, limited or
        timed here. Raises what the function raises; ToolFailure INVALID_ARGS, OUTPUT_INVALID, OUTPUT_EMPTY, POOL_FULL,
        and the code of the error flag that the result raises.
        """
        values, problems = self.arguments.taken(args)
        if problems or self.callee.context in args:
            told = "; ".join(f"{at} {said}" for at, said in self.check_args(args))
            raise ToolFailure("INVALID_ARGS", f"{self.name}: {told}")
        run = isolation.run_apart if self.spec.isolation == "process" else isolation.run
        returned = await run(self.name, self.callee, values, ctx)
        refuse_flagged(self.spec, returned)
        value = self.result.stored(returned)
        refuse_empty(self.spec, value)
        return value

    async def ask_probe(self, key: str, ctx: ToolContext, ports: Ports | None = None) -> JSON | Failure:
        """What became of the effect with this key: its result, None if it has not happened, or the failure to find
        out. A tool without a probe cannot tell. Time is the ports', as in `ctx`."""
        from tools.probing import ask

        if self.probe is None:
            said = f"{self.name} has no probe that could tell"
            return Failure(code="UNKNOWN_OUTCOME", message=said, step_id=ctx.step_id, tool=self.name)
        return await ask(self.name, self.probe, key, ctx, self.spec.timeout_s, ports)
