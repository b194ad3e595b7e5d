"""Servers that are killed, restarted, slow or gone: counts are exact, and nothing with an effect is sent twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import code_of, context, ports
from tests.tools.mcp.conftest import READS, Served, eventually, free_port, listed
from tools.call import CallFailure, Success, call
from tools.mcp import mcp_toolkit
from tools.outcome import Outcome
from tools.outside import held
from tools.registry import Registry

ALL = {"price": READS, "slow": READS, "text": READS}


async def called(registry: Registry, tool: str, tmp: Path, **args: Any) -> Outcome:
    """One safeguarded call."""
    return await call(registry[tool], args, context(tmp), ports())


async def test_a_read_whose_server_is_killed_is_read_again(shop: Served, tmp_path: Path) -> None:
    """Killed with SIGKILL in the middle of a call: the chain's retry finds a new child, and the call has a result."""
    (shop.folder / "kill-price").touch()
    kit = shop.kit(tools=ALL)
    registry = Registry.of(kit)
    async with held([kit]):
        outcome = await called(registry, "shop_price", tmp_path, item="tea")
    assert isinstance(outcome, Success)
    assert shop.calls() == ["price tea"] * 2
    assert len(shop.pids()) == 3


async def test_an_effect_whose_server_is_killed_is_unknown(shop: Served, tmp_path: Path) -> None:
    """Killed in the middle of an irreversible call: sent once, its outcome unknown, and the next call works."""
    (shop.folder / "kill-send").touch()
    kit = shop.kit(tools=ALL)
    registry = Registry.of(kit)
    async with held([kit]):
        outcome = await called(registry, "shop_send", tmp_path, to="ann")
        assert shop.calls() == ["send ann key-1"]
        assert code_of(await called(registry, "shop_price", tmp_path, item="tea")) == "OK"
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt) == ("UNKNOWN_OUTCOME", True)
    assert outcome.failure.message.endswith("it may have taken effect all the same")


async def test_an_idempotent_effect_is_sent_again_with_its_key(raw: Served, tmp_path: Path) -> None:
    """Killed in the middle: the same key on the second call."""
    raw.script(tools=[listed("act")], answers={"act": {"kill_once": True}})
    kit = raw.kit(tools={"act": {"effect": "idempotent", "risk": "low", "retry": READS["retry"]}})
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_act", tmp_path)) == "OK"
    assert [line for line in raw.calls() if line.startswith("act")] == ["act {} key-1"] * 2


@pytest.mark.parametrize("pause", [0.0, 0.3])
async def test_a_server_killed_between_calls_is_not_noticed_by_the_next(
    raw: Served, tmp_path: Path, pause: float
) -> None:
    """An irreversible call is sent on a new connection, once, however short ago the server died."""
    raw.script(tools=[listed("act"), listed("look")])
    kit = raw.kit(tools={"look": READS})
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
        os.kill(raw.pids()[-1], signal.SIGKILL)
        await asyncio.sleep(pause)
        outcome = await called(registry, "shop_act", tmp_path)
    assert code_of(outcome) == "OK"
    assert [line for line in raw.calls() if line[0] != "{"] == ["look {}", "act {} key-1"]


async def test_a_stopped_server_is_asked_before_an_effect_is_sent(
    raw: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs gets no irreversible call: it would not be known whether it acts when it goes on."""
    monkeypatch.setattr("tools.mcp.link.PING_S", 0.5)
    raw.script(tools=[listed("act"), listed("look")])
    kit = raw.kit(tools={"look": READS, "act": {"timeout_s": 20}}, start_timeout_s=1)
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
        stopped = raw.pids()[-1]
        os.kill(stopped, signal.SIGSTOP)
        outcome = await called(registry, "shop_act", tmp_path)
        os.kill(stopped, signal.SIGCONT)
    assert code_of(outcome) == "OK"
    assert raw.calls().count("act {} key-1") == 1


async def test_a_server_that_cannot_be_started_again_fails_certainly(raw: Served, tmp_path: Path) -> None:
    """Nothing was sent, so an irreversible tool has failed and not acted; the reason is told."""
    raw.script(tools=[listed("act")])
    kit = raw.kit()
    registry = Registry.of(kit)
    raw.script(tools=[listed("act")], exit=1, stderr="no licence")
    async with held([kit]):
        outcome = await called(registry, "shop_act", tmp_path)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt) == ("UNAVAILABLE", False)
    assert outcome.failure.message.endswith("ended before it had answered")
    assert "no licence" in outcome.raw


async def test_a_server_that_starts_too_slowly_for_the_call_fails_certainly(raw: Served, tmp_path: Path) -> None:
    """The deadline of the call comes before the server is ready: the call was not sent, and says so."""
    raw.script(tools=[listed("act")])
    kit = raw.kit(tools={"act": {"timeout_s": 0.5}})
    registry = Registry.of(kit)
    raw.script(tools=[listed("act")], mute=True)
    async with held([kit]):
        began = time.monotonic()
        outcome = await called(registry, "shop_act", tmp_path)
        assert time.monotonic() - began < 1
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt) == ("UNAVAILABLE", False)


async def test_over_http_a_killed_read_is_read_again(raw_http: Served, tmp_path: Path) -> None:
    """The stream of the answer breaks; the retry finds the server that was started anew."""
    raw_http.script(tools=[listed("look")], answers={"look": [{"stream": "kill"}, {"stream": "answer"}]})
    kit = raw_http.remote(tools={"look": {"effect": "read", "retry": {"initial_interval": 1.0, "jitter": 0}}})
    registry = Registry.of(kit)
    async with held([kit]):
        asking = asyncio.create_task(called(registry, "shop_look", tmp_path))
        await asyncio.to_thread(raw_http.started[-1].wait)
        await asyncio.to_thread(raw_http.serve, raw_http.port)
        assert code_of(await asking) == "OK"
    assert [line for line in raw_http.calls() if line.startswith("look")] == ["look {}"] * 2


@pytest.mark.parametrize("how", ["kill", "cut", "end"])
async def test_over_http_an_effect_without_an_answer_is_unknown_at_once(
    raw_http: Served, tmp_path: Path, how: str
) -> None:
    """Sent once; that the answer will never come is noticed long before the deadline, however the stream ended."""
    raw_http.script(tools=[listed("act")], answers={"act": [{"stream": how}]})
    kit = raw_http.remote()
    registry = Registry.of(kit)
    async with held([kit]):
        began = time.monotonic()
        outcome = await called(registry, "shop_act", tmp_path)
        assert time.monotonic() - began < 3
    assert code_of(outcome) == "UNKNOWN_OUTCOME"
    assert [line for line in raw_http.calls() if line.startswith("act")] == ["act {}"]


async def test_over_http_a_server_restarted_between_calls_gets_the_next(raw_http: Served, tmp_path: Path) -> None:
    """It knows our session no more, and says so without acting: the call is sent once more on a new one."""
    raw_http.script(tools=[listed("act"), listed("look")])
    kit = raw_http.remote(tools={"look": READS})
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
        raw_http.restart()
        assert code_of(await called(registry, "shop_act", tmp_path)) == "OK"
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
    assert [line for line in raw_http.calls() if "{" in line] == ["look {}", "act {}", "look {}"]


async def test_over_http_a_server_that_is_gone_fails_certainly(raw_http: Served, tmp_path: Path) -> None:
    """A call to nobody has not been sent."""
    raw_http.script(tools=[listed("act"), listed("look")])
    kit = raw_http.remote(tools={"look": READS})
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
        raw_http.kill()
        outcome = await called(registry, "shop_act", tmp_path)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.in_doubt) == ("UNAVAILABLE", False)
    assert outcome.failure.message.startswith("shop_act cannot be reached: no connection to http://127.0.0.1:")
    assert "act {}" not in raw_http.calls()


@pytest.mark.parametrize(("status", "code"), [(503, "UNAVAILABLE"), (429, "RATE_LIMITED"), (403, "NOT_PERMITTED")])
async def test_over_http_a_status_is_that_calls_failure(
    raw_http: Served, tmp_path: Path, status: int, code: str
) -> None:
    """With the wait that the server asks for; another call on the same connection is not touched."""
    refusing = {"status": status, "headers": {"Retry_After": "7"}}
    raw_http.script(
        tools=[listed("look"), listed("other")], answers={"look": [refusing], "other": [{"stream": "hang"}]}
    )
    once = {"effect": "read", "retry": {"max_attempts": 1}}
    kit = raw_http.remote(tools={"look": once, "other": {**once, "timeout_s": 1.5}})
    registry = Registry.of(kit)
    async with held([kit]):
        other = asyncio.create_task(called(registry, "shop_other", tmp_path))
        await asyncio.to_thread(eventually, lambda: "other {}" in raw_http.calls())
        outcome = await called(registry, "shop_look", tmp_path)
        assert code_of(await other) == "TIMEOUT"
        seen = lambda: any("notifications/cancelled" in line for line in raw_http.calls())  # noqa: E731
        assert await asyncio.to_thread(eventually, seen)
    assert isinstance(outcome, CallFailure)
    assert (outcome.failure.code, outcome.failure.delay_s) == (code, 7.0)


async def test_over_http_headers_are_sent_and_never_shown(raw_http: Served, tmp_path: Path) -> None:
    """A token opens the server; a wrong one is told without it."""
    raw_http.script(tools=[listed("look")], authorization="Bearer topsecret")
    right = raw_http.remote(every=READS, headers={"Authorization": "Bearer topsecret"})
    wrong = mcp_toolkit("wrong", url=right.server.url, headers={"Authorization": "Bearer not-so-secret"})
    registry = Registry.of(right, wrong)
    assert list(registry) == ["shop_look"]
    assert str(wrong.absent).endswith("answered 401")
    assert "secret" not in str(wrong.absent) + repr(wrong) + repr(wrong.server)
    async with held([right]):
        assert code_of(await called(registry, "shop_look", tmp_path)) == "OK"
    assert raw_http.calls()[-1] == "session ended"


async def test_over_http_a_server_of_the_sdk_is_spoken_to(shop: Served, tmp_path: Path) -> None:
    """Listed, called, killed in the middle of an effect."""
    (shop.folder / "kill-send").touch()
    kit = shop.remote(tools=ALL)
    registry = Registry.of(kit)
    async with held([kit]):
        assert code_of(await called(registry, "shop_price", tmp_path, item="tea")) == "OK"
        assert code_of(await called(registry, "shop_send", tmp_path, to="ann")) == "UNKNOWN_OUTCOME"
    assert shop.calls() == ["price tea", "send ann key-1"]


def test_a_url_where_nobody_listens_gives_no_tools(tmp_path: Path) -> None:
    """Told without what is secret in the URL."""
    kit = mcp_toolkit("shop", url=f"http://user:topsecret@127.0.0.1:{free_port()}/mcp?key=topsecret", start_timeout_s=2)
    assert list(Registry.of(kit)) == []
    assert str(kit.absent).startswith("no connection to http://127.0.0.1:")
    assert "topsecret" not in str(kit.absent)
