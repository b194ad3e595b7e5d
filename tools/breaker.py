"""Fifth layer: a tool that keeps failing is left alone for a while, then tried with one call.

closed ──too many failures──▶ open ──cooldown over──▶ half_open (one probe) ──▶ closed, or open again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from plans.values import JSON
from tools.outcome import Call, CallFailure, Outcome, Proceed, Success, refused
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
    started before a change does not count after it. `why` is the code of the failure that opened it."""

    model_config = ConfigDict(frozen=True)

    status: Literal["closed", "open", "half_open"] = "closed"
    window: tuple[bool, ...] = ()
    since: float = 0.0
    turn: int = 0
    why: str = ""


def admit(state: BreakerState, policy: BreakerPolicy, now: float, probe_s: float) -> tuple[BreakerState, float]:
    """The state after a call asked to be made, and 0 if it may, else how many seconds it should wait. `probe_s` is how
    long a probe may take before another one is allowed."""
    if state.status == "closed":
        return state, 0.0
    wait = state.since + (policy.cooldown_s if state.status == "open" else probe_s) - now
    if wait > 0:
        return state, wait
    return BreakerState(status="half_open", since=now, turn=state.turn + 1, why=state.why), 0.0


def record(
    state: BreakerState, policy: BreakerPolicy, turn: int, signal: Signal, now: float, why: str = ""
) -> BreakerState:
    """The state after a call that was admitted in `turn` ended with `signal`, a failure with the code `why`."""
    if turn != state.turn or state.status == "open":
        return state
    if state.status == "half_open":
        return _probed(state, policy, signal, now, why)
    if signal not in ("success", "failure"):
        return state
    window = (*state.window, signal == "success")[-policy.window :]
    if opens(window, policy):
        return BreakerState(status="open", since=now, turn=turn + 1, why=why)
    return state if window == state.window else state.model_copy(update={"window": window})


def _probed(state: BreakerState, policy: BreakerPolicy, signal: Signal, now: float, why: str) -> BreakerState:
    if signal in ("success", "answered"):
        return BreakerState(turn=state.turn + 1)
    # A probe that says nothing gives its place to the next call at once.
    since = now if signal == "failure" else now - policy.cooldown_s
    return BreakerState(status="open", since=since, turn=state.turn + 1, why=why if signal == "failure" else state.why)


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
    """BREAKER_OPEN instead of a call of a tool that keeps failing; `delay_s` says when to come back. A call that is
    cancelled counts as nothing, and gives a probe's place back."""
    place = await _asked(call)
    if place.wait_s > 0:
        last = f" (the last time with {place.why})" if place.why else ""
        said = f"{call.tool.name} failed too often{last} and is left alone for {place.wait_s:.0f} more seconds"
        return refused(call, "BREAKER_OPEN", said, delay_s=place.wait_s)
    try:
        outcome = await proceed(call)
    except BaseException:
        await asyncio.shield(_told(call, place.turn, "none"))
        raise
    why = outcome.failure.code if isinstance(outcome, CallFailure) else ""
    counted = _told(call, place.turn, signal_of(outcome), why)
    await (asyncio.shield(counted) if place.probes else counted)
    return outcome


class _Place(NamedTuple):
    """What was answered to a call that asked to be made."""

    turn: int
    wait_s: float
    probes: bool
    why: str = ""


async def _asked(call: Call) -> _Place:
    """Whether the call may be made. Whoever is cancelled while it becomes the probe is not it."""
    stored = state_of(await call.ports.breakers.load(call.tool.name))
    if stored.status == "closed":
        return _Place(stored.turn, 0.0, probes=False)
    asking = asyncio.ensure_future(_ask(call))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        place = await asking
        if place.probes:
            await _told(call, place.turn, "none")
        raise


async def _ask(call: Call) -> _Place:
    policy, clock = call.spec.breaker, call.ports.clock
    wait_s = 0.0

    def ask(state: BreakerState) -> BreakerState:
        nonlocal wait_s
        after, wait_s = admit(state, policy, clock.wall(), call.spec.timeout_s + PROBE_GRACE_S)
        return after

    after = await _change(call.ports.breakers, call.tool.name, ask)
    return _Place(after.turn, wait_s, probes=wait_s <= 0 and after.status == "half_open", why=after.why)


async def _told(call: Call, turn: int, signal: Signal, why: str = "") -> None:
    """How a call ended that was admitted in this turn."""
    policy, now = call.spec.breaker, call.ports.clock.wall
    await _change(call.ports.breakers, call.tool.name, lambda state: record(state, policy, turn, signal, now(), why))


async def close_circuit(store: BreakerStore, tool: str) -> bool:
    """Let calls of a tool through again at once, for a person who has mended it; whether they were refused."""
    refused_before = False

    def close(state: BreakerState) -> BreakerState:
        nonlocal refused_before
        refused_before = state.status != "closed"
        return BreakerState(turn=state.turn + 1) if refused_before else state

    await _change(store, tool, close)
    return refused_before


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
