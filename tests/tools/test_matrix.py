"""A table over the chain: each way in which a call can end, for each effect, and what each layer makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from plans.failure import ToolFailure
from plans.sharing import Asked, SlotLimits
from tests.tools.calls import Time, code_of, context, failed, tool_of
from tools.breaker import BreakerState, break_circuit, state_of
from tools.cache import use_cache
from tools.call import call
from tools.context import ToolContext
from tools.deadline import hold_deadline
from tools.fingerprints import refuse_repetition
from tools.limiter import limit
from tools.local import LocalBreakers, LocalCache, LocalFailures, LocalSettings
from tools.outcome import Call, CallFailure, Layer, Outcome, Success
from tools.permission import check_permission
from tools.ports import Clock, Ports
from tools.retry import retry_transport
from tools.rules import check_rules
from tools.spec import EFFECTS, Effect, Retry
from tools.tool import Tool

BREAKER = {"window": 20, "in_a_row": 20, "min_calls": 20}
QUICK = {"max_attempts": 3, "initial_interval": 0, "max_interval": 0, "jitter": 0}


class GraphBubbleUp(Exception):
    """Stands for what LangGraph raises to interrupt."""


@dataclass
class Service:
    """A tool's function that ends in one way until it is mended, and counts its calls."""

    ends: Callable[[], Awaitable[Any]]
    calls: int = 0

    async def ask(self) -> int:
        self.calls += 1
        result: int = await self.ends()
        return result


def raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    """A function that raises this."""

    async def ends() -> None:
        raise error

    return ends


def returning(value: Any) -> Callable[[], Awaitable[Any]]:
    """A function that returns this."""

    async def ends() -> Any:
        return value

    return ends


async def hanging() -> None:
    await asyncio.sleep(60)


ENDS: dict[str, Callable[[], Awaitable[Any]]] = {
    "returns": returning(1),
    "returns another type": returning("x"),
    "returns an error flag": returning({"error": "no"}),
    "refuses": raising(ToolFailure("NOT_FOUND", "no")),
    "is busy": raising(ToolFailure("RATE_LIMITED", "slow down")),
    "raises": raising(RuntimeError("x")),
    "was never reached": raising(ConnectionRefusedError()),
    "lost the connection": raising(ConnectionResetError()),
    "hangs": hanging,
    "cancels itself": raising(asyncio.CancelledError()),
}
# For each effect: the code, whether the effect is in doubt, how often the function was called.
Row = tuple[str, bool, int]
UNKNOWN: Row = ("UNKNOWN_OUTCOME", True, 1)
MATRIX: dict[str, tuple[Row, Row, Row, Row]] = {
    # read, transactional, idempotent, irreversible
    "returns": (("OK", False, 1),) * 4,
    "returns another type": (
        ("OUTPUT_INVALID", False, 1), ("OUTPUT_INVALID", False, 1), ("OUTPUT_INVALID", True, 1), UNKNOWN,
    ),
    "returns an error flag": (("CONFLICT", False, 3), ("CONFLICT", False, 1), ("CONFLICT", True, 3), UNKNOWN),
    "refuses": (("NOT_FOUND", False, 1),) * 4,
    "is busy": (
        ("RATE_LIMITED", False, 3), ("RATE_LIMITED", False, 1), ("RATE_LIMITED", False, 3), ("RATE_LIMITED", False, 1),
    ),
    "raises": (("TOOL_ERROR", False, 1), ("TOOL_ERROR", False, 1), ("TOOL_ERROR", True, 1), UNKNOWN),
    "was never reached": (
        ("UNAVAILABLE", False, 3), ("UNAVAILABLE", False, 1), ("UNAVAILABLE", False, 3), ("UNAVAILABLE", False, 1),
    ),
    "lost the connection": (
        ("UNAVAILABLE", False, 3), ("UNAVAILABLE", False, 1), ("UNAVAILABLE", True, 3), UNKNOWN,
    ),
    "hangs": (("TIMEOUT", False, 3), ("TIMEOUT", False, 1), UNKNOWN, UNKNOWN),
    "cancels itself": (("TOOL_ERROR", False, 1), ("TOOL_ERROR", False, 1), ("TOOL_ERROR", True, 1), UNKNOWN),
}  # fmt: skip
ANSWERED = frozenset({"NOT_FOUND", "CONFLICT"})
"""Codes by which a tool shows that it is there: the breaker does not count them."""


def shared() -> Ports:
    """Fresh stores of every kind."""
    return Ports(LocalBreakers(), LocalSettings(), LocalCache(), failures=LocalFailures())


def tool_for(service: Service, effect: Effect) -> Tool:
    """A tool with every layer at work."""
    flag = {"when": "error", "code": "CONFLICT"}
    kept = {"cache_ttl_s": 60} if effect == "read" else {}
    tries = {"retry": QUICK} if effect in ("read", "idempotent") else {}
    return tool_of(
        service.ask, name="t", effect=effect, breaker=BREAKER, concurrency=1, timeout_s=0.05, error_when=flag,
        **kept, **tries,
    )  # fmt: skip


async def breaker_of(around: Ports) -> BreakerState:
    """What the breaker has counted."""
    return state_of(await around.breakers.load("t"))


async def is_free(tool: Tool, service: Service, around: Ports) -> bool:
    """Whether the next call of the tool, once mended, gets through at once: no slot, no flight is left behind."""
    service.ends = returning(7)
    outcome = await asyncio.wait_for(call(tool, {}, context(), replace(around, failures=None)), timeout=1)
    return isinstance(outcome, Success)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("end", ENDS)
async def test_what_becomes_of_each_end_for_each_effect(end: str, effect: Effect) -> None:
    """Code, doubt and number of calls as in the table; the breaker counts calls, the fingerprint one attempt, a result
    is kept only of a read that gave one, and nothing is held afterwards."""
    service, around = Service(ENDS[end]), shared()
    tool = tool_for(service, effect)
    code, in_doubt, calls = MATRIX[end][EFFECTS.index(effect)]
    outcome = await call(tool, {}, context(), around)
    doubted = isinstance(outcome, CallFailure) and outcome.in_doubt
    assert (code_of(outcome), doubted, service.calls) == (code, in_doubt, calls)
    assert isinstance(outcome, Success) or outcome.called
    counted = () if code in ANSWERED else (code == "OK",) * calls
    assert (await breaker_of(around)).window == counted
    assert around.failures is not None
    noted = [len(each.at) for each in (await around.failures.known()).values()]
    assert noted == ([] if code == "OK" or in_doubt else [1])
    service.calls = 0
    await call(tool, {}, context(), replace(around, failures=None))
    assert (service.calls == 0) == (end == "returns" and effect == "read")
    assert await is_free(tool, service, around)


@pytest.mark.parametrize("effect", EFFECTS)
async def test_whoever_is_cancelled_leaves_nothing_behind(effect: Effect) -> None:
    """A cancelled call comes out as cancelled, counts as nothing, and the tool can be called at once."""
    service, around = Service(hanging), shared()
    tool = tool_of(service.ask, name="t", effect=effect, breaker=BREAKER, concurrency=1)
    asking = asyncio.ensure_future(call(tool, {}, context(), around))
    await asyncio.sleep(0.02)
    assert service.calls == 1
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await breaker_of(around)).window == ()
    assert around.failures is not None
    assert await around.failures.known() == {}
    assert await is_free(tool, service, around)


@pytest.mark.parametrize("effect", EFFECTS)
async def test_an_interrupt_counts_as_nothing(effect: Effect) -> None:
    """LangGraph's control flow passes every layer; neither breaker nor slot is any the worse."""
    service, around = Service(raising(GraphBubbleUp())), shared()
    tool = tool_for(service, effect)
    with pytest.raises(GraphBubbleUp):
        await call(tool, {}, context(), around)
    assert (service.calls, (await breaker_of(around)).window) == (1, ())
    assert await is_free(tool, service, around)


LAYERS: dict[str, Layer] = {
    "permission": check_permission,
    "rules": check_rules,
    "cache": use_cache,
    "fingerprints": refuse_repetition,
    "retry": retry_transport,
    "breaker": break_circuit,
    "limiter": limit,
    "deadline": hold_deadline,
}
BELOW: dict[str, Outcome | BaseException] = {
    "success": Success({"n": 1}),
    "hard": failed("NOT_FOUND"),
    "soft": failed("UNAVAILABLE"),
    "semantic": failed("PRECONDITION_FAILED"),
    "policy": failed("TOOL_DISABLED", called=False),
    "limit": failed("RESOURCE_LIMIT"),
    "unknown": replace(failed("UNKNOWN_OUTCOME"), in_doubt=True),
    "in doubt": replace(failed("UNAVAILABLE"), in_doubt=True),
    "raises": RuntimeError("the store is gone"),
    "cancelled": asyncio.CancelledError(),
    "interrupt": GraphBubbleUp(),
}


@dataclass
class Below:
    """Stands for all layers below: always ends in the same way. Counts its calls, and how often their end was told."""

    end: Outcome | BaseException
    calls: int = 0
    ended: int = 0

    def has_ended(self) -> None:
        self.ended += 1

    async def __call__(self, call: Call) -> Outcome:
        self.calls += 1
        call.ended()
        await asyncio.sleep(0)
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


def calls_of(layer: str, end: str, effect: Effect) -> int:
    """How often a layer asks those below: only retry asks again, for what may pass and cannot double an effect."""
    again = layer == "retry" and end in ("soft", "in doubt") and effect in ("read", "idempotent")
    return 3 if again else 1


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("end", BELOW)
async def test_each_layer_hands_each_end_on(layer: str, end: str) -> None:
    """Whatever ends below comes out of a layer as it is, an exception too; the work is told to have ended once for each
    time it was begun; and the layer lets the next call through."""
    for effect in EFFECTS:
        below = Below(BELOW[end])
        tool = tool_for(Service(returning(1)), effect)
        clock = Clock()
        ends_at = context(deadline=clock.monotonic() + 5)
        # No spec of such an effect may declare retries; were they there all the same, they are not made.
        spec = tool.spec.model_copy(update={"retry": Retry(**QUICK)})
        asked = Call(tool, spec, {}, ends_at, shared(), ended=below.has_ended)
        came: Any = None
        try:
            came = await LAYERS[layer](asked, below)
        except BaseException as error:  # noqa: BLE001 (what comes out is what is judged)
            came = error
        expected = failed("TOOL_ERROR") if (layer, end) == ("deadline", "cancelled") else below.end
        assert type(came) is type(expected)
        assert (layer, end) == ("deadline", "cancelled") or came == expected
        assert below.calls == calls_of(layer, end, effect)
        if layer not in ("limiter", "deadline"):
            assert below.ended == below.calls
        mended = Below(Success(2))
        again = await asyncio.wait_for(LAYERS[layer](asked, mended), timeout=1)
        kept = layer == "cache" and end == "success" and effect == "read"
        assert (code_of(again), mended.calls) == ("OK", 0 if kept else 1)


PROBED = {
    **dict.fromkeys(("success", "hard", "semantic", "limit"), "closed"),
    **dict.fromkeys(("soft", "unknown", "in doubt"), "refused"),
    **dict.fromkeys(("policy", "raises", "cancelled", "interrupt"), "asked again"),
}
"""What a probe's end makes of an open breaker; a probe that says nothing gives its place to the next call."""


@pytest.mark.parametrize("end", BELOW)
async def test_a_probe_gives_its_place_back_however_it_ends(end: str) -> None:
    """After the one call that probes an open breaker, the next is made, refused for a while, or the next probe."""
    tool, around = tool_for(Service(returning(1)), "read"), shared()
    opened = BreakerState(status="open", since=around.clock.wall() - 1_000, turn=3)
    await around.breakers.swap("t", None, opened.model_dump(mode="json"))
    asked = Call(tool, tool.spec, {}, context(), around)
    with suppress(RuntimeError, asyncio.CancelledError, GraphBubbleUp):
        await break_circuit(asked, Below(BELOW[end]))
    status = (await breaker_of(around)).status
    mended = Below(Success(2))
    code = code_of(await break_circuit(asked, mended))
    expected = {"closed": ("closed", "OK"), "refused": ("open", "BREAKER_OPEN"), "asked again": ("open", "OK")}
    assert (status, code) == expected[PROBED[end]]


@dataclass
class Watched:
    """Stores of every kind that note who asks them, and a function that does too."""

    time: Time = field(default_factory=Time)
    seen: list[str] = field(default_factory=list)

    def ports(self) -> Ports:
        """The watched stores."""
        inner = Ports(LocalBreakers(), LocalSettings(), LocalCache(), failures=LocalFailures())
        return replace(
            inner,
            settings=_Spy(inner.settings, self.seen, {"get": "settings"}),
            cache=_Spy(inner.cache, self.seen, {"get": "cache", "put": "kept"}),
            breakers=_Spy(inner.breakers, self.seen, {"load": "breaker"}),
            failures=_Spy(inner.failures, self.seen, {"known": "fingerprints", "note": "noted"}),
            slots=_Slots(self.seen, self.time),
            clock=replace(self.time.clock, sleep=self._sleep),
        )

    async def _sleep(self, seconds: float) -> None:
        self.seen.append("retry")
        await self.time.sleep(seconds)


class _Spy:
    """A store that notes its questions under a name each."""

    def __init__(self, inner: Any, seen: list[str], names: dict[str, str]) -> None:
        self._inner, self._seen, self._names = inner, seen, names

    def __getattr__(self, method: str) -> Any:
        if method in self._names:
            self._seen.append(self._names[method])
        return getattr(self._inner, method)


@dataclass
class _Slots:
    """A store of slots in which each is free after five seconds."""

    seen: list[str]
    time: Time

    async def take(self, slot: str, tool: str, limits: SlotLimits, hold_s: float) -> Asked:
        self.seen.append("limiter")
        self.time.now += 5
        return Asked(granted=True)

    def give_back(self, slot: str) -> None:
        self.seen.append("freed")


async def test_the_layers_stand_in_their_order() -> None:
    """Settings, permission, rules, cache, fingerprints, retry, breaker, limiter, deadline, the function: seen by whom
    each is asked after, in a call that fails once and is tried again."""
    watched = Watched()
    left: list[float] = []

    async def function(a: int, ctx: ToolContext) -> int:
        watched.seen.append("function")
        left.append(ctx.deadline - watched.time.now)
        if len(left) == 1:
            raise ConnectionRefusedError
        return a

    rules = [{"check": "at_most", "arg": "a", "value": 5}]
    tool = tool_of(
        function, name="t", rules=rules, roles=("clerk",), cache_ttl_s=60, concurrency=1, limit_scope="workers",
        timeout_s=20, retry={**QUICK, "initial_interval": 1, "max_interval": 1},
    )  # fmt: skip
    around = watched.ports()

    async def asked(a: int, role: str | None) -> tuple[str, list[str]]:
        watched.seen.clear()
        outcome = await call(tool, {"a": a}, context(deadline=watched.time.now + 300), around, role=role)
        return code_of(outcome), list(watched.seen)

    assert await asked(9, None) == ("NOT_PERMITTED", ["settings"])
    assert await asked(9, "clerk") == ("RULE_VIOLATED", ["settings"])
    code, seen = await asked(1, "clerk")
    assert code == "OK"
    once = ["breaker", "limiter", "function", "freed", "breaker"]
    assert [each for each, before in zip(seen, ["", *seen], strict=False) if each != before] == [
        "settings", "cache", "fingerprints", *once, "retry", *once, "kept",
    ]  # fmt: skip
    assert left == [20, 20]  # the deadline counts from behind the limiter, whose wait is not the call's
    assert await asked(1, "clerk") == ("OK", ["settings", "cache"])
