"""Documents as they are found, and as somebody who wishes us ill writes them: each is read or refused in words."""

from __future__ import annotations

import base64
import json
from datetime import date
from typing import Any

import pytest

from plans.errors import ConfigurationError
from tests.tools.http.flaky import FlakyServer, says
from tests.tools.http.reaching import calling, message_of, value_of
from tests.tools.openapi.shop import SHOP, answer, of_paths, parameter, shop_at, tools_of
from tools.openapi import OpenApiToolkit, openapi_toolkit
from tools.registry import Registry

CHAIN: dict[str, Any] = {
    f"C{n}": {"properties": {"next": {"$ref": f"#/components/schemas/C{n + 1}"}}} for n in range(600)
}


def kit_of(operation: dict[str, Any], **more: Any) -> OpenApiToolkit:
    """A toolkit of one operation, `GET /x`."""
    return openapi_toolkit("wild", of_paths({"/x": {"get": {"operationId": "x", **operation}}}, **more))


def test_chains_of_references_are_as_long_as_they_like() -> None:
    """Six hundred schemas, each of which refers to the next, are read: the stack is not what bounds them."""
    schemas = {**CHAIN, "C600": {"type": "string"}}
    kit = kit_of({"responses": answer({"$ref": "#/components/schemas/C0"})}, components={"schemas": schemas})
    assert (list(kit.tools), kit.left_out) == (["x"], {})
    assert len((kit.tools["x"].output_schema or {})["$defs"]) == 601


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#Anchor"}, "to a mark in it"),
        ({"$ref": "#/tags/" + "9" * 5_000}, "names nothing"),
        ({"$ref": "#/components/schemas/Round"}, "refers to itself without end"),
        ({"$schema": ["x"], "type": 5}, "no JSON schema"),
        ({"type": "number", "default": float("inf")}, "not a number that JSON can hold"),
        ({"type": "string", "pattern": "("}, "no regular expression"),
    ],
)
def test_a_schema_that_cannot_be_used_leaves_its_operation_out(schema: Any, words: str) -> None:
    """Its tool is not there, and the reason is a sentence; nothing else comes out."""
    round_about = {"Round": {"allOf": [{"$ref": "#/components/schemas/Round"}]}}
    more = {"tags": [1], "components": {"schemas": round_about}}
    for operation in ({"responses": answer(schema)}, {"parameters": [parameter("q", schema=schema)]}):
        kit = kit_of(operation, **more)
        assert not kit.tools
        assert words in kit.left_out["x"]


def test_an_enum_that_is_none_is_told_in_3_0_too() -> None:
    """`nullable` beside it changes nothing about that."""
    document = of_paths({"/x": {"get": {"operationId": "x", "responses": answer({"nullable": True, "enum": 5})}}})
    assert "no JSON schema" in openapi_toolkit("wild", {**document, "openapi": "3.0.3"}).left_out["x"]


def test_a_document_that_another_reader_of_yaml_has_read_is_the_same() -> None:
    """Numbers as keys and dates as values are what such readers make of 200 and 2026-01-01."""
    schema = {"type": "string", "example": date(2026, 1, 1), "enum": [date(2026, 1, 1)]}
    responses: Any = {200: {"description": "", "content": {"application/json": {"schema": schema}}}}
    kit = kit_of({"responses": responses}, info={"title": "t", "version": date(2026, 1, 1)})
    assert kit.tools["x"].output_schema == {"type": "string", "enum": ["2026-01-01"]}


def test_what_is_no_path_is_no_operation() -> None:
    """Extensions stand among the paths, and are nobody's tool."""
    kit = openapi_toolkit("wild", of_paths({"x-notes": "see below", "x-more": {"get": {}}, "/x": {"get": {}}}))
    assert (list(kit.tools), kit.left_out) == (["get_x"], {})


@pytest.mark.parametrize("name", ["Content-Length", "Host", "Transfer-Encoding", "X Key", "X-Schlüssel", "X\r\nEvil"])
def test_no_document_names_a_header_that_cannot_be_sent(name: str) -> None:
    """A key whose header is the connection's own, or none, leaves the operation out before anything is sent."""
    scheme = {"key": {"type": "apiKey", "in": "header", "name": name}}
    document = of_paths({"/x": {"get": {"security": [{"key": []}]}}}, components={"securitySchemes": scheme})
    assert "no header can have" in openapi_toolkit("wild", document, auth={"key": "secret-1"}).left_out["get_x"]
    with pytest.raises(ConfigurationError, match="no name of a header") as told:
        openapi_toolkit("wild", document, headers={name: "secret-1"})
    assert "secret-1" not in str(told.value)


def test_a_header_that_would_make_another_method_is_no_argument() -> None:
    """A read stays one, whatever the document lets be sent beside it."""
    kit = kit_of({"parameters": [parameter("X-HTTP-Method-Override", "header"), parameter("q")]})
    assert kit.tools["x"].arguments.names == {"q"}


def test_headers_that_configuration_fills_are_no_arguments() -> None:
    """The key of an effect and a fixed header are often declared as required; a plan is not asked for them."""
    declared = [parameter(name, "header", required=True) for name in ("Idempotency-Key", "X-Tenant", "X-Other")]
    document = of_paths({"/x": {"post": {"operationId": "make", "parameters": declared}}})
    keyed = {"make": {"effect": "idempotent", "idempotency_header": "idempotency-key"}}
    tools = tools_of(document, tools=keyed, headers={"x-tenant": "tenant-1"})
    assert tools["make"].input_schema["required"] == ["X-Other"]
    assert tools["make"].input_schema["properties"].keys() == {"X-Other"}


PRIVATE = "k/9+f3=ÄÖ".replace("ÄÖ", "zz")


@pytest.mark.parametrize(
    "script",
    [
        says(json.dumps({"said": PRIVATE, PRIVATE: [PRIVATE]}).replace("/", "\\/")),
        says('{"said": "' + "".join(f"\\u{ord(c):04x}" for c in PRIVATE) + '"}'),
        says('{"next": "https://api.example.com/?key=k%2F9%2Bf3%3Dzz"}'),
        says(f"see {PRIVATE}".encode("utf-16"), media="text/plain; charset=utf-16"),
        says(f"see {PRIVATE}", media="text/plain"),
        says(json.dumps({"said": PRIVATE}).replace("/", "\\/"), status=400),
        says("Basic " + base64.b64encode(b"me:" + PRIVATE.encode()).decode(), media="text/plain", status=500),
    ],
)
async def test_a_secret_that_is_repeated_in_another_spelling_is_blanked(server: FlakyServer, script: Any) -> None:
    """JSON, URLs and charsets write the same text in several ways; none of them brings it back."""
    server.on("/v1/health", script)
    basic = {"securitySchemes": {"token": {"type": "http", "scheme": "basic"}}}
    operation: dict[str, Any] = {"get": {"security": [{"token": []}], "responses": {}}}
    document = {**SHOP, "paths": {"/health": operation}, "components": basic}
    kit = shop_at(server, document, auth={"token": f"me:{PRIVATE}"}, every={"retry": {"max_attempts": 1}})
    outcome = await calling(Registry.of(kit)["get_health"], {})
    shown = json.dumps(str(outcome))
    for spelling in (
        PRIVATE,
        PRIVATE.replace("/", "\\/"),
        "k%2F9",
        base64.b64encode(b"me:" + PRIVATE.encode()).decode(),
    ):
        assert spelling not in shown.replace("\\\\", "\\")
    assert value_of(outcome) if "Success" in type(outcome).__name__ else message_of(outcome)
