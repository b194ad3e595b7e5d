"""How many calls retries, attempts, alternatives and replans come to together, counted on the engine itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from nodes import schemas
from nodes.model_settings import ModelSettings
from nodes.models import ModelAnswer
from plans.failure import ToolFailure
from plans.values import canonical
from tests.simulation.doors import Wire
from tests.simulation.memory_engine import agent_of, open_memory_engine
from tests.simulation.people import _between
from tests.simulation.server import Server
from tests.simulation.timeline import Timeline, chance, simulated
from tests.simulation.toolkit import NEVER_OPEN
from tools.registry import Registry, Toolkit
from tools.spec import RETRIED_EFFECTS

if TYPE_CHECKING:
    from nodes.prompts import Rendered
    from plans.values import JSON

LOST = "lost"
SOFT, HARD = ("UNAVAILABLE", "TIMEOUT", "RATE_LIMITED", "CONFLICT"), ("NOT_FOUND", "TOOL_ERROR", "PREMISE_BROKEN")


@dataclass(frozen=True)
class Setup:
    """What a tool and a run allow: transport calls of an attempt, attempts of a step, alternatives, replans."""

    calls: int = 3
    attempts: int = 3
    alternatives: int = 1
    local_replans: int = 2
    global_replans: int = 3
    effect: str = "read"
    repeats: bool = False
    same_again: bool = False

    @property
    def most(self) -> int:
        """The bound of docs/retries.md for one step and all that is planned in its place."""
        plans = (1 + self.global_replans) * (1 + self.local_replans)
        return plans * (1 + self.alternatives) * self.attempts * self.transport

    @property
    def transport(self) -> int:
        """Calls of one attempt."""
        return self.calls if self.effect in RETRIED_EFFECTS else 1


@dataclass
class Count:
    """A tool and its alternatives, which fail as the script says, for ever; and every call that was made of them."""

    setup: Setup
    codes: list[str]
    made: list[tuple[str, str]] = field(default_factory=list)

    def registry(self) -> Registry:
        """The tools."""
        kit = Toolkit("counted")
        names = [f"t{n}" for n in range(1 + self.setup.alternatives)]
        options: dict[str, Any] = {"breaker": NEVER_OPEN}
        if self.setup.effect in RETRIED_EFFECTS:
            options["retry"] = {"max_attempts": self.setup.calls}
        if not self.setup.repeats:
            options["repeats"] = None
        for name in names:
            fallbacks = names[1:] if name == names[0] else []
            kit.add(self._tool(name), name=name, effect=self.setup.effect, fallbacks=fallbacks, risk="low", **options)
        return Registry.of(kit)

    def _tool(self, name: str) -> Any:
        async def act(a: int, ctx: Any = None) -> None:
            self.made.append((name, canonical({"a": a})))
            code = self.codes[(len(self.made) - 1) % len(self.codes)]
            raise ConnectionResetError if code == LOST else ToolFailure(code, "not today")

        return act


class Persistent:
    """A model that plans the failed step again and again, with other arguments, or under another name as it was."""

    def __init__(self, setup: Setup) -> None:
        self.settings, self._setup, self._number = ModelSettings("persistent"), setup, 0

    async def aclose(self) -> None:
        """Nothing is open."""

    async def ask(
        self, prompt: Rendered, *, schema: Mapping[str, JSON] | None = None, max_tokens: int | None = None
    ) -> ModelAnswer:
        """The step once more."""
        self._number += 1
        local = prompt.rules.startswith("You repair")
        name = json.loads(_between("failed_step", prompt.task))["id"] if local else f"s{self._number}"
        args = {"a": 0 if self._setup.same_again else self._number}
        text = json.dumps({"goal": "again", "steps": [{"id": name, "tool": "t0", "args": args, "reason": "again"}]})
        return ModelAnswer(text, "stop", None, 1, 1, "persistent", 0.0)


def counted(setup: Setup, codes: list[str]) -> tuple[Count, str]:
    """Every call of a run whose only step always fails, and how the run ended."""
    schemas.load()
    timeline, count = Timeline(), Count(setup, codes)

    async def run() -> str:
        wire = Wire(Server(timeline), chance("bounds"))
        async with open_memory_engine(wire, count.registry(), model=Persistent(setup)) as engine:
            limits = {
                "max_attempts": setup.attempts,
                "max_local_replans": setup.local_replans,
                "max_global_replans": setup.global_replans,
            }
            step = {"id": "s0", "tool": "t0", "args": {"a": 0}, "reason": "a test"}
            plan = {"goal": "a test", "steps": [step]}
            agent = agent_of(engine, wire, InMemorySaver())
            return (await agent.run(plan=plan, thread_id="t", request_id="r", limits=limits, approve="none")).status

    return count, simulated(run(), timeline)


@pytest.mark.parametrize(
    "setup",
    [Setup(), Setup(calls=1), Setup(attempts=1), Setup(alternatives=0), Setup(local_replans=0, global_replans=0)],
)
def test_a_tool_that_always_fails_is_called_as_often_as_the_formula_says(setup: Setup) -> None:
    """With failures that may go away, a model that never gives up and no count of repetitions: exactly the bound."""
    count, status = counted(setup, ["UNAVAILABLE"])
    assert (status, len(count.made)) == ("failed", setup.most)


SETUPS = st.builds(
    Setup,
    calls=st.integers(1, 4),
    attempts=st.integers(1, 4),
    alternatives=st.integers(0, 2),
    local_replans=st.integers(0, 2),
    global_replans=st.integers(0, 2),
    effect=st.sampled_from(["read", "read", "transactional", "idempotent", "irreversible"]),
    repeats=st.booleans(),
    same_again=st.booleans(),
)


@settings(max_examples=25)
@given(setup=SETUPS, codes=st.lists(st.sampled_from((*SOFT, *HARD, LOST)), min_size=1, max_size=8))
def test_whatever_fails_and_however_it_is_planned_again_the_bound_holds(setup: Setup, codes: list[str]) -> None:
    """Any mix of failures that pass and that do not, any limits, any effect, the same arguments again or others."""
    count, status = counted(setup, codes)
    assert status in ("failed", "paused")  # a person is asked about what may have happened
    assert 1 <= len(count.made) <= setup.most
    all_known = LOST not in codes or setup.effect in ("read", "transactional")
    if setup.repeats and all_known:  # an unknown outcome is no failure
        each = max(count.made.count(made) for made in count.made)
        assert each <= max(3, setup.attempts) * setup.transport


def test_the_same_call_is_made_three_attempts_long_however_often_it_is_planned_again() -> None:
    """With the defaults, a planner that repeats the failed call under other names gets three attempts of three calls,
    of it and of its alternative, and not the hundred and eight that replans alone would allow."""
    count, status = counted(Setup(repeats=True, same_again=True, alternatives=1), ["UNAVAILABLE"])
    assert status == "failed"
    assert {made: count.made.count(made) for made in count.made} == {
        ("t0", '{"a":0}'): 9,
        ("t1", '{"a":0}'): 9,
    }
