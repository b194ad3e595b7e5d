"""A server with faults, called through the whole chain: how often it is called, how long that takes, how it ends."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from plans.errors import PlanRejected
from tests.nodes.model_server import ScriptedModel
from tests.running import plan, running, step
from tests.tools.calls import code_of, context
from tests.tools.http.flaky import (
    ADDRESS,
    CUT_BEFORE_HEADERS,
    CUT_IN_BODY,
    HOST,
    FlakyServer,
    Script,
    Speaker,
    busy,
    late,
    raw,
    redirects,
    says,
    slow_headers,
    trickle,
)  # fmt: skip
from tests.tools.http.reaching import Waits, calling, http_tool
from tools.breaker import BreakerState
from tools.http import http_toolkit
from tools.openapi import openapi_toolkit
from tools.registry import Registry, Toolkit
from tools.tool import Tool

GOOD = says('{"ok": true}')
BAD_JSON = says('{"ok": ')


def with_time(tool: Tool, seconds: float, **more: Any) -> Tool:
    """The tool with another timeout, and whatever else is to be changed."""
    return replace(tool, spec=tool.spec.changed({"timeout_s": seconds, **more}))


@pytest.mark.parametrize(
    ("scripts", "code", "calls"),
    [
        ([busy(2), GOOD], "OK", 2),
        ([says("", 503), GOOD], "OK", 2),
        ([says("", 502), says("", 500), GOOD], "OK", 3),
        ([says("", 503)], "UNAVAILABLE", 3),
        ([busy(1)], "RATE_LIMITED", 3),
        ([CUT_BEFORE_HEADERS, GOOD], "OK", 2),
        ([CUT_IN_BODY, GOOD], "OK", 2),
        ([CUT_IN_BODY], "UNAVAILABLE", 3),
        ([raw(b"")], "UNAVAILABLE", 3),
        ([says("", 504), GOOD], "OK", 2),
        ([says("", 409), GOOD], "OK", 2),
        ([says("", 404), GOOD], "NOT_FOUND", 1),
        ([says("", 400), GOOD], "INVALID_ARGS", 1),
        ([says("", 403), GOOD], "NOT_PERMITTED", 1),
        ([BAD_JSON, GOOD], "OUTPUT_INVALID", 1),
        ([redirects("http://169.254.169.254/"), GOOD], "NOT_PERMITTED", 1),
        ([redirects("http://127.0.0.1:1/"), GOOD], "NOT_PERMITTED", 1),
    ],
)
async def test_a_read_is_called_as_often_as_declared(
    server: FlakyServer, scripts: list[Script], code: str, calls: int
) -> None:
    """What may pass is tried again up to the third time, everything else is final at the first answer."""
    url = server.on("/x", *scripts)
    outcome = await calling(http_tool(server), {"url": url})
    assert (code_of(outcome), len(server.requests)) == (code, calls)


@pytest.mark.parametrize("as_date", [False, True])
async def test_the_wait_is_the_one_that_was_asked_for(server: FlakyServer, as_date: bool) -> None:
    """Retry-After, in seconds or as a date, is waited for where it is longer than the policy's own wait."""
    waits = Waits()
    await calling(http_tool(server), {"url": server.on("/x", busy(7, as_date=as_date), GOOD)}, waits=waits)
    assert len(waits.waited) == 1
    assert 5 < waits.waited[0] <= 7  # a date has no fractions of a second


async def test_no_retry_begins_that_could_not_end(server: FlakyServer) -> None:
    """A server that asks for more time than there is gets one call, and the failure says how long it asked for."""
    outcome = await calling(http_tool(server), {"url": server.on("/x", busy(60), GOOD)}, seconds=5)
    assert (code_of(outcome), len(server.requests)) == ("RATE_LIMITED", 1)


@pytest.mark.parametrize("fault", [late(9, GOOD), slow_headers(9), trickle(9)], ids=["late", "headers", "body"])
async def test_a_deadline_holds_whatever_the_server_does(server: FlakyServer, fault: Script) -> None:
    """No answer, headers letter by letter, a body drop by drop: the call ends with TIMEOUT when its time is over."""
    tool = with_time(http_tool(server), 0.3, retry={"max_attempts": 1})
    began = time.monotonic()
    outcome = await calling(tool, {"url": server.on("/x", fault)})
    assert code_of(outcome) == "TIMEOUT"
    assert 0.29 < time.monotonic() - began < 3  # generous: the machine may be busy


async def test_a_tool_keeps_its_deadline_by_itself(server: FlakyServer) -> None:
    """Handed an instant, it ends there without the chain around it: `http`, and an operation of a document."""
    document = {"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}
    url = server.on("/x", trickle(9))
    kit = openapi_toolkit("s", document, base_url=server.url(""), private_hosts=[f"{HOST}={ADDRESS}"])
    for tool, args in ((http_tool(server), {"url": url}), (Registry.of(kit)["get_x"], {})):
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await tool.invoke(args, context(deadline=began + 0.3))
        assert time.monotonic() - began < 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", [late(9, GOOD), slow_headers(9), trickle(9)], ids=["late", "headers", "body"])
async def test_a_deadline_holds_within_fifty_milliseconds(server: FlakyServer, fault: Script) -> None:
    """The best of five, so that a machine that is busy for a moment is no news."""
    tool = with_time(http_tool(server), 0.3, retry={"max_attempts": 1})
    overruns = []
    for _ in range(5):
        gc.collect()
        began = time.monotonic()
        await calling(tool, {"url": server.on("/x", fault)})
        overruns.append(time.monotonic() - began - 0.3)
    assert min(overruns) < 0.05, overruns


async def test_the_run_ends_before_the_tool_does(server: FlakyServer) -> None:
    """The nearer of the tool's own time and the run's is the one that counts, over all its retries."""
    url = server.on("/x", late(0.2, says("", 503)))
    began = time.monotonic()
    tool = with_time(http_tool(server), 5, retry={"max_attempts": 9, "initial_interval": 0})
    outcome = await calling(tool, {"url": url}, seconds=0.5)
    assert code_of(outcome) in ("TIMEOUT", "UNAVAILABLE")
    assert time.monotonic() - began < 3
    assert len(server.requests) in (2, 3)


async def test_a_cancelled_call_lets_go_of_its_connection(server: FlakyServer) -> None:
    """Whoever cancels gets its cancellation at once, and the server sees the connection end."""
    came, left = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(speaker: Speaker) -> None:
        loop.call_soon_threadsafe(came.set)
        speaker.wait_for_the_end()
        loop.call_soon_threadsafe(left.set)

    work = asyncio.create_task(calling(http_tool(server), {"url": server.on("/x", watch)}))
    await asyncio.wait_for(came.wait(), 5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.wait_for(left.wait(), 5)


async def test_the_breaker_leaves_a_broken_server_alone(server: FlakyServer) -> None:
    """After three failures in a row nobody calls it for a while; refusals of the guard do not count."""
    from tests.tools.calls import ports
    from tools.call import call

    tool, shared = http_tool(server), ports(Waits().clock)
    down, outside = server.on("/down", says("", 503)), {"url": "http://127.0.0.1:1/"}
    codes = [code_of(await call(tool, outside, context(), shared)) for _ in range(4)]
    assert codes == ["NOT_PERMITTED"] * 4
    codes = [code_of(await call(tool, {"url": down}, context(), shared)) for _ in range(2)]
    assert (codes, len(server.requests)) == (["UNAVAILABLE", "BREAKER_OPEN"], 3)
    assert BreakerState.model_validate(await shared.breakers.load("http")).status == "open"


async def test_in_a_run_reads_are_retried_and_a_result_is_used(
    server: FlakyServer, database_url: str, tmp_path: Path
) -> None:
    """A whole run on a real database: two faults, then a result that the answer is made of."""
    url = server.on("/order", CUT_IN_BODY, says("", 503), says('{"id": 7}'))
    kit = http_toolkit([f"{HOST}:{server.port}"], [f"{HOST}={ADDRESS}"])
    async with running(database_url, tmp_path, [kit]) as agent:
        fetch = step("s1", "http", args={"url": url}, success_when="status == `200`")
        result = await agent.run(plan=plan(fetch, answer="order ${s1.json.id}"), thread_id="t1")
    assert (result.status, result.answer, len(server.requests)) == ("done", "order 7", 3)


async def test_in_a_run_nothing_gets_inside(server: FlakyServer, database_url: str, tmp_path: Path) -> None:
    """A redirect inside ends the run with a sentence, and the metadata address was never called."""
    url = server.on("/", redirects("http://169.254.169.254/latest/"))
    kit = http_toolkit([f"{HOST}:{server.port}"], [f"{HOST}={ADDRESS}"])
    async with running(database_url, tmp_path, [kit]) as agent:
        result = await agent.run(plan=plan(step("s1", "http", args={"url": url})), thread_id="t1")
    assert (result.status, len(server.requests)) == ("failed", 1)
    assert result.failures[0].code == "NOT_PERMITTED"


async def test_a_planner_is_offered_what_is_set_up(httpserver: HTTPServer, database_url: str, tmp_path: Path) -> None:
    """A tool with something left to configure is in no planning prompt; once a host is allowed it is."""
    endpoint, kit = ScriptedModel(httpserver), Toolkit("small")
    kit.add(lambda: 1, name="one", effect="read")
    offered = []
    for number, hosts in enumerate(([], ["api.example.com"])):
        endpoint.answers(json.dumps({"goal": "g", "steps": [{"id": "s1", "tool": "one", "args": {}}]}))
        async with running(database_url, tmp_path, [kit, http_toolkit(hosts)], model=endpoint) as agent:
            assert (await agent.run("look", thread_id=f"t{number}")).status == "done"
        offered.append([f'"name":"{name}"' in endpoint.prompt() for name in ("one", "http")])
    assert offered == [[True, False], [True, True]]


async def test_a_plan_is_told_what_to_configure(database_url: str, tmp_path: Path) -> None:
    """Without a host, a plan that names the tool is refused before it starts, with the setting to make."""
    async with running(database_url, tmp_path, [http_toolkit()]) as agent:
        with pytest.raises(PlanRejected, match=r"TOOL_UNAVAILABLE.*SURESTEP_HTTP_HOSTS"):
            await agent.run(plan=plan(step("s1", "http", args={"url": "https://example.com/"})), thread_id="t1")
