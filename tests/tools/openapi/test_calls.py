"""Operations called through the whole chain on a real server with faults: how often, with what, and what they give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.running import plan, running, step
from tests.tools.calls import code_of
from tests.tools.http.flaky import (
    CUT_BEFORE_HEADERS,
    CUT_IN_BODY,
    FlakyServer,
    Script,
    busy,
    late,
    redirects,
    says,
)
from tests.tools.http.reaching import calling, message_of, value_of
from tests.tools.openapi.shop import SECRET, SHOP, answer, shop_at, with_operation
from tools.call import CallFailure
from tools.openapi import OpenApiToolkit
from tools.registry import Registry
from tools.tool import Tool

SENT = says('{"id": "A1", "status": "sent"}')
MADE = says('{"id": "A1", "status": "open"}', 201)
BODY = {"body": {"status": "open"}}
KEYED = {"createOrder": {"effect": "idempotent", "idempotency_header": "Idempotency-Key"}}


def tool_of(kit: OpenApiToolkit, name: str, **changes: Any) -> Tool:
    """A registered tool of a toolkit."""
    tool = Registry.of(kit)[name]
    return replace(tool, spec=tool.spec.changed(changes)) if changes else tool


async def test_an_answer_is_a_value(server: FlakyServer) -> None:
    """The request is the operation's, with the credential; the result is the body's value."""
    server.on("/v1/orders/A%2F1", SENT)
    outcome = await calling(tool_of(shop_at(server), "getOrder"), {"id": "A/1"})
    assert value_of(outcome) == {"id": "A1", "status": "sent"}
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (says('{"id": "A1"}'), "OUTPUT_INVALID", "not what it declares"),
        (says('{"id": "A1", "status": "lost"}'), "OUTPUT_INVALID", "not what it declares"),
        (says(""), "OUTPUT_INVALID", "not what it declares"),
        (says("hello", media="text/plain"), "OUTPUT_INVALID", "not what it declares"),
        (says('{"id": "A1", "id": "A2", "status": "sent"}'), "OUTPUT_INVALID", "stands twice"),
        (says("<html>", media="text/html", status=404), "NOT_FOUND", "404"),
        (says("%PDF", media="application/pdf"), "OUTPUT_INVALID", "only JSON and text"),
        (says('{"id": "A1", "status": "sent"}', media=""), "OK", ""),
    ],
)
async def test_an_answer_has_to_be_what_the_document_says(
    server: FlakyServer, script: Script, code: str, words: str
) -> None:
    """The schema of its status judges it; nothing else passes for a result."""
    server.on("/v1/orders/A1", script)
    outcome = await calling(tool_of(shop_at(server), "getOrder"), {"id": "A1"})
    assert code_of(outcome) == code
    assert code == "OK" or words in message_of(outcome)


async def test_head_has_no_body_to_judge(server: FlakyServer) -> None:
    """An answer to HEAD is good by its status, also where the document describes a body."""
    kit = shop_at(server, with_operation({"responses": answer({"type": "object"})}, method="head"), auth={})
    server.on("/v1/x", says("{}"), says("", 404))
    tool = tool_of(kit, "head_x")
    assert [code_of(await calling(tool, {})) for _ in range(2)] == ["OK", "NOT_FOUND"]


async def test_each_status_has_its_own_schema(server: FlakyServer) -> None:
    """What is right for 202 is wrong for 200; a status that nothing is said of is not judged."""
    responses = {**answer({"type": "object"}), **answer({"type": "string"}, "202"), **answer(status="204")}
    tool = tool_of(shop_at(server, with_operation({"responses": responses}), auth={}), "get_x")
    scripts = [says("{}"), says('"queued"', 202), says("{}", 202), says('"a"', 200), says("[1]", 203), says("", 204)]
    server.on("/v1/x", *scripts)
    outcomes = [await calling(tool, {}) for _ in scripts]
    assert [code_of(each) for each in outcomes] == ["OK", "OK", "OUTPUT_INVALID", "OUTPUT_INVALID", "OK", "OK"]


@pytest.mark.parametrize(
    ("scripts", "code", "calls"),
    [
        ([busy(2), MADE], "OK", 2),
        ([says("", 503), MADE], "OK", 2),
        ([CUT_BEFORE_HEADERS, MADE], "OK", 2),
        ([CUT_IN_BODY, MADE], "OK", 2),
        ([says("", 503)], "UNAVAILABLE", 3),
        ([busy(1)], "RATE_LIMITED", 3),
        ([says("", 422), MADE], "INVALID_ARGS", 1),
    ],
)
async def test_an_effect_with_a_key_is_sent_again_with_the_same_key(
    server: FlakyServer, scripts: list[Script], code: str, calls: int
) -> None:
    """Declared idempotent with a header, it is retried like a read, and each time the key is the same."""
    server.on("/v1/orders", *scripts)
    outcome = await calling(tool_of(shop_at(server, tools=KEYED), "createOrder"), BODY, key="key-7")
    assert (code_of(outcome), len(server.requests)) == (code, calls)
    assert {request.headers["idempotency-key"] for request in server.requests} == {"key-7"}
    assert {request.body for request in server.requests} == {b'{"status":"open"}'}


@pytest.mark.parametrize(
    ("script", "code", "in_doubt"),
    [
        (MADE, "OK", False),
        (CUT_BEFORE_HEADERS, "UNKNOWN_OUTCOME", True),
        (CUT_IN_BODY, "UNKNOWN_OUTCOME", True),
        (says("", 503), "UNKNOWN_OUTCOME", True),
        (says("", 500), "UNKNOWN_OUTCOME", True),
        (late(9, MADE), "UNKNOWN_OUTCOME", True),
        (says('{"id": 7}', 201), "UNKNOWN_OUTCOME", True),
        (says("{", 201), "UNKNOWN_OUTCOME", True),
        (redirects("/v1/elsewhere", 303), "UNKNOWN_OUTCOME", True),
        (redirects("http://127.0.0.1:1/", 307), "UNKNOWN_OUTCOME", True),
        (busy(1), "RATE_LIMITED", False),
        (says("", 422), "INVALID_ARGS", False),
        (says("", 404), "NOT_FOUND", False),
    ],
)
async def test_an_irreversible_effect_is_sent_once(
    server: FlakyServer, script: Script, code: str, in_doubt: bool
) -> None:
    """Whatever comes back, or does not: one request, and where it may have happened nobody says that it has not."""
    server.on("/v1/orders", script)
    server.on("/v1/elsewhere", MADE)
    outcome = await calling(tool_of(shop_at(server), "createOrder", timeout_s=1.5), BODY)
    assert (code_of(outcome), len(server.requests)) == (code, 1)
    assert isinstance(outcome, CallFailure) is (code != "OK")
    assert not isinstance(outcome, CallFailure) or outcome.in_doubt is in_doubt


async def test_an_effect_that_never_left_is_known_not_to_have_happened(server: FlakyServer) -> None:
    """Nobody listens there: the failure is certain, and may be tried again by the run."""
    document = {**SHOP, "servers": []}
    kit = shop_at(FlakyServer(port=1), document)
    outcome = await calling(tool_of(kit, "createOrder"), BODY)
    assert code_of(outcome) == "UNAVAILABLE"
    assert isinstance(outcome, CallFailure)
    assert outcome.in_doubt is False


async def test_an_error_in_a_good_status_is_an_error(server: FlakyServer) -> None:
    """HTTP 200 with an error body: what the spec calls an error is one, before the schema is asked."""
    flag = {"when": "error != null", "code": "NOT_FOUND", "message_from": "error.text", "certain": True}
    kit = shop_at(server, every={"error_when": [flag]})
    server.on("/v1/orders/A1", says('{"error": {"text": "no such order"}}'))
    server.on("/v1/orders", says('{"error": {"text": "closed"}}', 201))
    read = await calling(tool_of(kit, "getOrder"), {"id": "A1"})
    assert (code_of(read), "no such order" in message_of(read)) == ("NOT_FOUND", True)
    written = await calling(tool_of(kit, "createOrder"), BODY)
    assert (code_of(written), len(server.requests)) == ("NOT_FOUND", 2)


async def test_nothing_secret_comes_back(server: FlakyServer) -> None:
    """A server that repeats our token puts it neither into a result, nor a message, nor the raw text of an error."""
    open_ended = with_operation({"security": [{"token": []}]}, components=SHOP["components"])
    tool = tool_of(shop_at(server, open_ended), "get_x")
    server.on("/v1/x", says(json.dumps({"you": f"Bearer {SECRET}"})), says(f"bad token {SECRET}", 403))
    assert SECRET not in json.dumps(value_of(await calling(tool, {})))
    outcome = await calling(tool, {})
    assert isinstance(outcome, CallFailure)
    assert "[secret]" in outcome.raw
    assert SECRET not in repr(outcome)
    assert SECRET not in repr(tool)


async def test_a_key_in_the_query_is_in_no_error(server: FlakyServer) -> None:
    """Where the connection fails or the status is an error, the URL is told without its query."""
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "key"}}
    document = with_operation({"security": [{"key": []}]}, components={"securitySchemes": schemes})
    tool = tool_of(shop_at(server, document, auth={"key": SECRET}), "get_x")
    server.on("/v1/x", says("", 500), CUT_IN_BODY, redirects("https://evil.example.org/"))
    outcome = await calling(tool, {})
    assert server.requests[0].path == f"/v1/x?key={SECRET}"
    assert (code_of(outcome), len(server.requests)) == ("NOT_PERMITTED", 3)
    assert SECRET not in repr(outcome)


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:1/", "http://169.254.169.254/", "https://evil.example.org/", "https://localhost:{port}/"],
)
async def test_credentials_stay_with_their_server(server: FlakyServer, location: str) -> None:
    """A redirect elsewhere is refused; one on the same server is followed with what was sent."""
    server.on("/v1/orders/A1", redirects(location.format(port=server.port)))
    server.on("/v1/orders/A2", redirects("/v2/orders/A2"))
    server.on("/v2/orders/A2", SENT)
    tool = tool_of(shop_at(server), "getOrder")
    assert code_of(await calling(tool, {"id": "A1"})) == "NOT_PERMITTED"
    assert code_of(await calling(tool, {"id": "A2"})) == "OK"
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {SECRET}"] * 3


async def test_a_base_url_that_leads_inside_is_refused(server: FlakyServer) -> None:
    """The address of the document's host is checked too: inside only where it is named as an internal one."""
    kit = shop_at(server, private_hosts=[], auth={})
    outcome = await calling(tool_of(kit, "get_health"), {})
    assert (code_of(outcome), len(server.requests)) == ("NOT_PERMITTED", 0)
    assert "http_private_hosts" in message_of(outcome)


async def test_in_a_run_an_order_is_made_once(server: FlakyServer, database_url: str, tmp_path: Path) -> None:
    """On a real database: an irreversible POST whose answer was lost waits for a person, and is not sent again."""
    server.on("/v1/orders", CUT_BEFORE_HEADERS, MADE)
    async with running(database_url, tmp_path, [shop_at(server)]) as agent:
        result = await agent.run(plan=plan(step("s1", "createOrder", args=BODY)), thread_id="t1")
    assert (result.status, len(server.requests)) == ("paused", 1)
    assert "may have taken effect" in str(result.failures) + str(result.approvals) + str(result.steps)


async def test_in_a_run_a_key_is_the_same_over_steps_and_retries(
    server: FlakyServer, database_url: str, tmp_path: Path
) -> None:
    """On a real database: an idempotent POST is tried again until it is answered,
    always with the one key of its step."""
    server.on("/v1/orders", *[says("", 503)] * 4, MADE)
    lenient = {
        **KEYED["createOrder"],
        "retry": {"max_attempts": 3, "initial_interval": 0},
        "breaker": {"window": 99, "in_a_row": 99},
    }
    async with running(database_url, tmp_path, [shop_at(server, tools={"createOrder": lenient})]) as agent:
        made = step("s1", "createOrder", args=BODY)
        result = await agent.run(plan=plan(made, answer="${s1.status}"), thread_id="t1")
    assert (result.status, result.answer, len(server.requests)) == ("done", "open", 5)
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
