"""What is open and for how long: one connection per event loop, closed with the last engine, and no child left."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from tests.tools.calls import code_of, context, ports
from tests.tools.mcp.conftest import READS, Served, eventually, free_port, listed
from tools.call import call
from tools.mcp import mcp_toolkit
from tools.outside import held
from tools.registry import Registry


async def look(registry: Registry, tmp: Path) -> str:
    """One call, and how it ended."""
    return code_of(await call(registry["shop_look"], {}, context(tmp), ports()))


def test_nothing_is_started_before_a_registry_is_made(raw: Served) -> None:
    """Declaring a toolkit opens nothing; listing opens and closes; a registry that nobody calls holds nothing."""
    raw.script(tools=[listed("look")])
    kit = raw.kit(every=READS)
    assert raw.pids() == []
    Registry.of(kit)
    Registry.of(kit)
    assert (len(raw.pids()), raw.alive()) == (1, [])


async def test_a_held_connection_is_closed_with_the_last_engine(raw: Served, tmp_path: Path) -> None:
    """Engines that follow each other open their own, engines at the same time share one."""
    raw.script(tools=[listed("look")])
    kit = raw.kit(every=READS)
    registry = Registry.of(kit)
    async with held([kit]):
        async with held([kit]):
            assert await look(registry, tmp_path) == "OK"
        assert len(raw.alive()) == 1
        assert await look(registry, tmp_path) == "OK"
        assert len(raw.pids()) == 2
    assert raw.alive() == []
    async with held([kit]):
        assert await look(registry, tmp_path) == "OK"
    assert (len(raw.pids()), raw.alive()) == (3, [])


def test_event_loops_one_after_the_other(raw: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each has its own connection; a loop that ends without closing anything leaves no child and says nothing."""
    raw.script(tools=[listed("look")])
    kit = raw.kit(every=READS)
    registry = Registry.of(kit)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert asyncio.run(look(registry, tmp_path)) == "OK"
            assert eventually(lambda: not raw.alive())
    assert len(raw.pids()) == 4
    assert caplog.records == []


async def test_a_cancelled_program_leaves_no_child(raw: Served, tmp_path: Path) -> None:
    """Cancelled in the middle of a call, as by a Ctrl-C: closing still comes to its end."""
    raw.script(tools=[listed("look")], answers={"look": {}})
    kit = raw.kit(every={**READS, "timeout_s": 60})
    registry = Registry.of(kit)

    async def program() -> None:
        async with held([kit]):
            await look(registry, tmp_path)

    running = asyncio.create_task(program())
    assert await asyncio.to_thread(eventually, lambda: "look {}" in raw.calls(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert raw.alive() == []


async def test_a_server_that_never_greets_is_closed_at_once(raw: Served, tmp_path: Path) -> None:
    """Closing does not wait for the start to time out."""
    raw.script(tools=[listed("look")])
    kit = raw.kit(every={**READS, "timeout_s": 0.3, "retry": {"max_attempts": 1}})
    registry = Registry.of(kit)
    raw.script(tools=[listed("look")], mute=True)
    async with held([kit]):
        assert await look(registry, tmp_path) == "UNAVAILABLE"
        began = time.monotonic()
    assert time.monotonic() - began < 4
    assert raw.alive() == []


async def test_calls_that_come_together_open_one_connection(raw: Served, tmp_path: Path) -> None:
    """The first calls of two runs wait for the same child."""
    raw.script(tools=[listed("look")])
    kit = raw.kit(every=READS)
    registry = Registry.of(kit)
    async with held([kit]):
        assert await asyncio.gather(*(look(registry, tmp_path) for _ in range(8))) == ["OK"] * 8
    assert len(raw.pids()) == 2


async def test_the_first_call_blocks_no_event_loop(raw: Served, tmp_path: Path) -> None:
    """Under `langgraph dev` a blocking call in async code fails the run: opening, calling and closing make none."""
    from blockbuster import blockbuster_ctx

    raw.script(tools=[listed("look")])
    kit = raw.kit(every=READS)
    ctx, using = context(tmp_path), ports()
    with blockbuster_ctx("tools"):
        registry = await asyncio.to_thread(Registry.of, kit)
        async with held([kit]):
            outcome = await call(registry["shop_look"], {}, ctx, using)
    assert code_of(outcome) == "OK"


async def test_the_first_call_over_http_blocks_no_event_loop(raw_http: Served, tmp_path: Path) -> None:
    """The same for a server at a URL."""
    from blockbuster import blockbuster_ctx

    raw_http.script(tools=[listed("look")])
    kit = raw_http.remote(every=READS)
    registry = Registry.of(kit)
    ctx, using = context(tmp_path), ports()
    with blockbuster_ctx("tools"):
        async with held([kit]):
            outcome = await call(registry["shop_look"], {}, ctx, using)
    assert code_of(outcome) == "OK"


def test_logs_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """httpx logs every URL at INFO: what is secret in one is left out, for whoever has logging set up."""
    url = f"http://127.0.0.1:{free_port()}/mcp?key=topsecret"
    with caplog.at_level(logging.DEBUG):
        assert list(Registry.of(mcp_toolkit("shop", url=url, start_timeout_s=2))) == []
        logging.getLogger("httpx").info("HTTP Request: %s %s", "POST", url)
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    assert "topsecret" not in caplog.text


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain sentence, with the toolkit that needs it."""
    from plans.errors import ConfigurationError
    from tools.mcp import toolkit

    monkeypatch.setattr(toolkit, "find_spec", lambda _name: None)
    with pytest.raises(
        ConfigurationError, match=r"the toolkit 'clock' is an MCP server's.*pip install 'surestep\[mcp\]'"
    ):
        Registry.of(mcp_toolkit("clock", command=["x"]))
