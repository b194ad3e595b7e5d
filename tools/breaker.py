"""Fifth layer: a tool that keeps failing is left alone for a while, then tried with one call.

closed ──too many failures──▶ open ──cooldown over──▶ half_open (one probe) ──▶ closed, or open again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from plans.values import JSON
from tools.outcome import Call, Outcome, Proceed, Success, refused
from tools.ports import BreakerStore, Ports
from tools.spec import BreakerPolicy
from tools.tool import Tool

Signal = Literal["success", "failure", "answered", "none"]
"""What a call says about its tool: it works; it fails; it is there, though this call was wrong; nothing."""

FAILING = frozenset({"TIMEOUT", "UNAVAILABLE", "RATE_LIMITED", "UNKNOWN_OUTCOME", "TOOL_ERROR", "OUTPUT_INVALID"})
PROBE_GRACE_S = 5.0
"""A probe that has not reported this long after its own timeout is taken for lost with its process."""


class BreakerState(BaseModel):
    """One tool's breaker, as it is stored. `window` holds the last calls, True for a success; `since` is the wall time
    at which it opened, or at which the probe started; `turn` grows with every change of status, so that a call which
    started before a change does not count after it."""

    model_config = ConfigDict(frozen=True)

    status: Literal["closed", "open", "half_open"] = "closed"
    window: tuple[bool, ...] = ()
    since: float = 0.0
    turn: int = 0


def admit(state: BreakerState, policy: BreakerPolicy, now: float, probe_s: float) -> tuple[BreakerState, float]:
    """The state after a call asked to be made, and 0 if it may, else how many seconds it should wait. `probe_s` is how
    long a probe may take before another one is allowed."""
    if state.status == "closed":
        return state, 0.0
    wait = state.since + (policy.cooldown_s if state.status == "open" else probe_s) - now
    if wait > 0:
        return state, wait
    return BreakerState(status="half_open", since=now, turn=state.turn + 1), 0.0


def record(state: BreakerState, policy: BreakerPolicy, turn: int, signal: Signal, now: float) -> BreakerState:
    """The state after a call that was admitted in `turn` ended with `signal`."""
    if turn != state.turn or state.status == "open":
        return state
    if state.status == "half_open":
        return _probed(state, policy, signal, now)
    if signal not in ("success", "failure"):
        return state
    window = (*state.window, signal == "success")[-policy.window :]
    if opens(window, policy):
        return BreakerState(status="open", since=now, turn=turn + 1)
    return state if window == state.window else state.model_copy(update={"window": window})


def _probed(state: BreakerState, policy: BreakerPolicy, signal: Signal, now: float) -> BreakerState:
    if signal in ("success", "answered"):
        return BreakerState(turn=state.turn + 1)
    # A probe that says nothing gives its place to the next call at once.
    since = now if signal == "failure" else now - policy.cooldown_s
    return BreakerState(status="open", since=since, turn=state.turn + 1)


def opens(window: tuple[bool, ...], policy: BreakerPolicy) -> bool:
    """Whether these calls, oldest first, are too many failures."""
    if len(window) >= policy.in_a_row and not any(window[-policy.in_a_row :]):
        return True
    return len(window) >= policy.min_calls and window.count(False) / len(window) > policy.failure_rate


def signal_of(outcome: Outcome) -> Signal:
    """What an outcome says about its tool; nothing where the tool was not reached."""
    if isinstance(outcome, Success):
        return "success"
    if not outcome.called or outcome.failure.code == "POOL_FULL":
        return "none"
    return "failure" if outcome.failure.code in FAILING else "answered"


async def break_circuit(call: Call, proceed: Proceed) -> Outcome:
    """BREAKER_OPEN instead of a call of a tool that keeps failing; `delay_s` says when to come back."""
    policy, clock = call.spec.breaker, call.ports.clock
    probe_s = call.spec.timeout_s + PROBE_GRACE_S
    wait = 0.0

    def ask(state: BreakerState) -> BreakerState:
        nonlocal wait
        after, wait = admit(state, policy, clock.wall(), probe_s)
        return after

    turn = (await _change(call.ports.breakers, call.tool.name, ask)).turn
    if wait > 0:
        said = f"{call.tool.name} failed too often and is left alone for {wait:.0f} more seconds"
        return refused(call, "BREAKER_OPEN", said, delay_s=wait)

    async def tell(signal: Signal) -> None:
        await _change(
            call.ports.breakers, call.tool.name, lambda state: record(state, policy, turn, signal, clock.wall())
        )

    try:
        outcome = await proceed(call)
    except BaseException:
        await asyncio.shield(tell("none"))
        raise
    await tell(signal_of(outcome))
    return outcome


async def open_tools(tools: Mapping[str, Tool], ports: Ports) -> frozenset[str]:
    """The tools that would be refused now, which a planner should not count on."""
    now = ports.clock.wall()
    states = {name: state_of(stored) for name, stored in (await ports.breakers.load_all()).items() if name in tools}
    return frozenset(
        name
        for name, state in states.items()
        if state.status == "open" and admit(state, tools[name].spec.breaker, now, 0.0)[1] > 0
    )


async def _change(store: BreakerStore, tool: str, change: Callable[[BreakerState], BreakerState]) -> BreakerState:
    """Change what is shared, again from the start whenever somebody else was faster. Gives the new state."""
    while True:
        stored = await store.load(tool)
        before = state_of(stored)
        after = change(before)
        if after == before or await store.swap(tool, stored, after.model_dump(mode="json")):
            return after


def state_of(stored: dict[str, JSON] | None) -> BreakerState:
    """The stored state; a closed breaker where there is none, or one that another version wrote."""
    try:
        return BreakerState.model_validate(stored or {})
    except ValidationError:
        return BreakerState()
