"""From a document to tools: what is read, what is refused with its place, and what the rest becomes."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

from plans.errors import ConfigurationError
from tests.tools.openapi.shop import SHOP, answer, body, of_paths, parameter, tools_of, with_operation
from tools.openapi import openapi_toolkit
from tools.openapi.operations import METHODS
from tools.registry import Registry


def test_each_operation_is_a_tool() -> None:
    """Name, description, arguments, result, effect and risk of each come from the document and its methods."""
    tools = tools_of(SHOP, auth={"token": "secret-1"})
    assert {name: (tool.effect, tool.risk) for name, tool in tools.items()} == {
        "getOrder": ("read", "low"),
        "replaceOrder": ("irreversible", "medium"),
        "removeOrder": ("irreversible", "high"),
        "listOrders": ("read", "low"),
        "createOrder": ("irreversible", "medium"),
        "get_health": ("read", "low"),
    }
    get = tools["getOrder"]
    assert get.description == "Look one order up."
    assert get.input_schema == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    assert get.output_schema is not None
    assert get.output_schema["$defs"]["Order"]["required"] == ["id", "status"]
    assert (get.spec.timeout_s, get.spec.output_trust, get.spec.retry.max_attempts) == (15, "untrusted", 3)
    assert tools["createOrder"].spec.retry.max_attempts == 1


def test_a_large_document_of_others_can_be_used_whole() -> None:
    """The one that LangGraph's server ships: each of its operations is a tool, and what deletes or cancels is risky."""
    shipped = Path(str(distribution("langgraph-api").locate_file("openapi.json")))
    kit = openapi_toolkit("langgraph", shipped, base_url="https://langgraph.example.com")
    tools = Registry.of(kit)
    methods = [m for item in json.loads(shipped.read_text("utf-8"))["paths"].values() for m in item if m in METHODS]
    assert (len(tools), kit.left_out) == (len(methods), {})
    assert {tool.risk for name, tool in tools.items() if name.startswith(("delete", "cancel"))} == {"high"}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_document_is_a_file(tmp_path: Path, suffix: str) -> None:
    """JSON or YAML, told apart by their content; numbers as keys of responses are what they say."""
    file = tmp_path / f"shop{suffix}"
    text = json.dumps(SHOP) if suffix == ".json" else yaml.safe_dump(SHOP).replace("'200'", "200")
    file.write_text(text)
    tools = Registry.of(openapi_toolkit("shop", file, auth={"token": "secret-1"}))
    assert "createOrder" in tools
    assert tools["listOrders"].output_schema is not None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"swagger": "2.0", "paths": {}}, "Swagger 2.0, which is not read; convert it"),
        ({"openapi": "4.0.0", "paths": {}}, "says openapi: 4.0.0; OpenAPI 3.0 and 3.1 are read"),
        ({"paths": {}}, "has no openapi field, but paths"),
        ({"openapi": "3.1.0"}, "has no paths"),
        (of_paths({}, servers=[]), "set base_url"),
        (of_paths({}, servers=[{"url": "/v1"}]), "set base_url"),
        (of_paths({}, servers=[{"url": "ftp://api.example.com"}]), "only http and https"),
        (of_paths({}, servers=[{"url": "https://api.example.com/?a=b"}]), "has a query"),
        (of_paths({}, servers=[{"url": "https://u:p@api.example.com/"}]), "user or password"),
    ],
)
def test_what_is_no_document_is_refused(document: dict[str, Any], words: str) -> None:
    """One sentence that says what was expected and what to do."""
    with pytest.raises(ConfigurationError) as refused:
        openapi_toolkit("api", document)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"openapi": "3.1.0", "openapi": "3.0.0"}', "is no JSON: a key stands twice"),
        ("openapi: 3.1.0\npaths: {}\npaths: {}\n", "says things twice"),
        ("openapi: [", "is no YAML"),
        ("- a", "is a list"),
        ("{", "is no JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """Syntax is told by its place, and a doubled key is no choice of ours."""
    (tmp_path / "api.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        openapi_toolkit("api", tmp_path / "api.yaml")


def test_a_document_is_not_fetched() -> None:
    """An address is no file, and a file that is not there says so."""
    with pytest.raises(ConfigurationError, match="is not fetched; save it, and name the file"):
        openapi_toolkit("api", "https://api.example.com/openapi.json?key=secret")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        openapi_toolkit("api", "none.yaml")


FAULTY: dict[str, Any] = {
    "/a/{id}": {"get": {"responses": answer()}},
    "/b": {"get": {"parameters": [parameter("id", "path")], "responses": answer()}},
    "/c": {"get": {"parameters": [{"$ref": "#/components/parameters/None"}], "responses": answer()}},
    "/d": {"get": {"parameters": [parameter("a", schema={"$ref": "other.yaml#/A"})], "responses": answer()}},
    "/e": {"post": {"requestBody": body({}, "multipart/form-data"), "operationId": "upload", "responses": answer()}},
    "/f": {"get": {"parameters": [parameter("a", "query", style="matrix")], "responses": answer()}},
    "/g": {"get": {"parameters": [{"name": "a"}], "responses": answer()}},
    "/h": {"get": 3},
    "/i": [],
    "/j": {"get": {"responses": answer({"$ref": "https://evil.example.org/schema.json"})}},
    "/k": {"get": {"parameters": [parameter("a", schema={"type": "strin"})], "responses": answer()}},
    "/l": {"get": {"servers": [{"url": "https://evil.example.org"}], "responses": answer()}},
    "/m": {"get": {"parameters": [parameter("a", schema={"$dynamicRef": "#x"})], "responses": answer()}},
    "/n": {"get": {"parameters": [parameter("a\r\nb", "header")], "responses": answer()}},
    "/o": {"get": {"responses": answer({"type": "object", "properties": 7})}},
    "/p": {"get": {"security": "token", "responses": answer()}},
    "q": {"get": {"responses": answer()}},
    "/good": {"get": {"operationId": "good", "responses": answer()}},
}


def test_each_fault_is_told_by_its_place_and_the_rest_is_used() -> None:
    """An operation that cannot be called is named with the reason, and does not take the others with it."""
    kit = openapi_toolkit("api", of_paths(FAULTY))
    assert list(Registry.of(kit)) == ["good"]
    told = [
        "{id}, and no parameter of this name", "'id' is in path, which has no such hole",
        "paths./c.get.parameters[0]: $ref '#/components/parameters/None' names nothing",
        "paths./d.get.parameters[0].schema: $ref 'other.yaml#/A' leads out of the document",
        "paths./e.post.requestBody: is multipart/form-data", "has the style 'matrix'",
        "should have a name, and in: path",
        "paths./h.get: is a number", "paths./i: is a list", "evil.example.org/schema.json' leads out",
        "is no JSON schema",
        "has servers of its own", "has a $dynamicRef", "which no header can have", "properties: is a number",
        "security: should be a list", "does not begin with /",
    ]  # fmt: skip
    assert len(kit.left_out) == len(told)
    for words, why in zip(told, kit.left_out.values(), strict=True):
        assert words in why
    assert kit.notices[4].startswith("the toolkit 'api' leaves upload out: paths./e.post")
    assert "multipart" in str(kit.why_absent("upload"))


def test_all_that_is_wrong_with_an_operation_is_told_at_once() -> None:
    """Parameters, body, answer and security each with its place, in one reason."""
    operation = {
        "parameters": [{"$ref": "#/none"}, parameter("a", style="matrix"), {"name": "b"}],
        "requestBody": body({}, "multipart/form-data"),
        "responses": {**answer({"$ref": "#/nothing"}), **answer({"type": 3, "$ref": 3, "not": 7}, "201")},
        "security": 3,
        "servers": [{"url": "https://evil.example.org"}],
    }
    why = openapi_toolkit("api", with_operation(operation, method="post")).left_out["post_x"]
    told = [
        "post.parameters[0]: $ref '#/none'", "post.parameters[2]: should have a name",
        "post.parameters[1]: has the style",
        "servers of its own", "post.requestBody: is multipart", "responses.200", "responses.201", "post.security",
    ]  # fmt: skip
    assert [words for words in told if words not in why] == []
    assert why.count(";") >= len(told) - 1


def test_names_are_ours_and_never_two_alike() -> None:
    """Odd letters go, long names end with a digest, and so do those that would clash, in whatever order they stand."""
    paths: dict[str, Any] = {
        "/a": {"get": {"operationId": "get order"}, "post": {"operationId": "get/order"}},
        "/b": {"get": {"operationId": "x" * 90}, "delete": {}},
        "/ü/{id}": {"parameters": [parameter("id", "path")], "get": {}},
    }
    names = set(tools_of(of_paths(paths)))
    assert names == set(tools_of(of_paths(dict(reversed(paths.items())))))
    assert all(len(name) <= 64 for name in names)
    assert {"delete_b", "get_id"} <= names
    assert len([name for name in names if name.startswith("get_order_")]) == 2
    assert all(name.startswith("shop_") for name in tools_of(of_paths(paths), prefix="shop_"))


def test_recursive_schemas_stay_finite() -> None:
    """A schema that holds itself stands once among the definitions, and judges values of any depth."""
    below = {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}
    schemas = {"Tree": {"type": "object", "properties": {"below": below}}}
    operation = {"requestBody": body({"$ref": "#/components/schemas/Tree"})}
    tool = tools_of(with_operation(operation, method="post", components={"schemas": schemas}))["post_x"]
    assert tool.input_schema["$defs"]["Tree"]["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
    assert tool.check_args({"body": {"below": [{"below": []}]}}) == []
    assert tool.check_args({"body": {"below": [{"below": 3}]}}) != []


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, [None, "a"], [3]),
        ({"enum": ["a"], "nullable": True, "type": "string"}, [None, "a"], ["b"]),
        ({"allOf": [{"type": "object"}], "nullable": True}, [None, {}], [3]),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
        ({"type": "integer", "maximum": 5, "exclusiveMaximum": False}, [5], [6]),
        ({"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}, [{}], [{"y": 1}]),
    ],
)
def test_schemas_of_3_0_mean_what_they_meant(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """null and exclusive bounds are written in another way there."""
    document = with_operation({"requestBody": body(schema)}, method="post", openapi="3.0.3")
    tool = tools_of(document)["post_x"]
    assert [tool.check_args({"body": value}) for value in good] == [[] for _ in good]
    assert all(tool.check_args({"body": value}) for value in bad)


def test_what_is_read_only_is_nothing_to_send() -> None:
    """Neither asked for nor taken in a body, and required in an answer; the other way round for write-only."""
    schema = {
        "type": "object",
        "required": ["id", "secret", "name"],
        "properties": {"id": {"readOnly": True}, "secret": {"writeOnly": True}, "name": {}},
    }
    operation = {"requestBody": body(schema), "responses": answer(schema)}
    tool = tools_of(with_operation(operation, method="post"))["post_x"]
    assert tool.input_schema["properties"]["body"]["required"] == ["secret", "name"]
    assert set(tool.input_schema["properties"]["body"]["properties"]) == {"secret", "name"}
    assert (tool.output_schema or {})["required"] == ["id", "name"]


def test_arguments_with_one_name_are_told_apart() -> None:
    """A path parameter keeps its name, the one of the query says where it goes, and a body steps aside."""
    operation = {
        "parameters": [
            parameter("id", "path"),
            parameter("id"),
            parameter("body"),
            parameter("Authorization", "header"),
        ],
        "requestBody": body({"type": "object"}),
    }
    tool = tools_of(with_operation(operation, "/x/{id}", "post"))["post_x_id"]
    assert list(tool.input_schema["properties"]) == ["id", "query_id", "body", "request_body"]


def test_a_changed_operation_is_another_version() -> None:
    """What is kept of an operation's results is not used once its document says something else of it."""
    changed = {**SHOP, "components": {**SHOP["components"], "schemas": {"Order": {"type": "object"}}}}
    before, after = (tools_of(document, auth={"token": "secret-1"}) for document in (SHOP, changed))
    assert before["getOrder"].spec.version != after["getOrder"].spec.version
    assert before["removeOrder"].spec.version == after["removeOrder"].spec.version


def test_which_operations_are_tools_is_a_choice() -> None:
    """By the tool's name, the operationId or method and path, with * for any letters."""
    chosen = tools_of(SHOP, auth={"token": "secret-1"}, only=["get*", "POST /orders"], without=["get_health"])
    assert list(chosen) == ["getOrder", "createOrder"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tools": {"getOrdr": {}}}, "no operation 'getOrdr'; did you mean 'getOrder'?"),
        ({"tools": {"getOrder": {"timeout": 3}}}, "no setting 'timeout' here; did you mean 'timeout_s'?"),
        ({"tools": {"getOrder": {"isolation": "process"}}}, "no setting 'isolation'"),
        ({"tools": {"getOrder": {"timeout_s": 0}}}, "timeout_s=0"),
        ({"tools": {"getOrder": {"name": "listOrders"}}}, "declared twice"),
        ({"tools": {"createOrder": {"effect": "idempotent"}}}, "name the header that takes its key"),
        ({"tools": {"createOrder": {"effect": "transactional"}}}, "cannot be transactional"),
        ({"tools": {"removeOrder": {"effect": "read"}}}, "is a DELETE, which writes"),
        ({"tools": {"createOrder": {"idempotency_header": "a b"}}}, "no name of a header"),
        ({"auth": {"tokn": "secret-1"}}, "no security scheme 'tokn'; did you mean 'token'?"),
        ({"auth": {"token": "a\r\nb: secret-1"}}, "holds what a header cannot hold"),
        ({"headers": {"X-Key": ""}}, "X-Key is empty"),
        ({"base_url": "http://shop.example.com", "auth": {"token": "secret-1"}}, "over http in the open"),
        ({"private_hosts": ["a"]}, "name=address"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_configured_so_is_told(more: dict[str, Any], words: str) -> None:
    """A slip of ours is refused when the tools are registered, with what was meant and without any secret."""
    with pytest.raises(ConfigurationError) as refused:
        tools_of(SHOP, **more)
    assert words in str(refused.value)
    assert "secret-1" not in str(refused.value)


def test_put_and_delete_may_be_idempotent_without_a_key() -> None:
    """HTTP promises that twice is once there; a POST needs a header for its key."""
    policy = {"replaceOrder": {"effect": "idempotent"}, "DELETE /orders/{id}": {"effect": "idempotent"}}
    more = {"createOrder": {"effect": "idempotent", "idempotency_header": "Idempotency-Key", "risk": "low"}}
    tools = tools_of(SHOP, auth={"token": "secret-1"}, tools={**policy, **more})
    assert [tools[name].effect for name in ("replaceOrder", "removeOrder", "createOrder")] == ["idempotent"] * 3
    assert tools["createOrder"].risk == "low"


def test_a_tool_without_its_secret_says_what_to_set() -> None:
    """It is there and not offered; what needs no credential can be called."""
    tools = tools_of(SHOP)
    assert tools["getOrder"].to_configure == "set auth.token of this service to its secret"
    assert tools["get_health"].to_configure is None


def test_a_scheme_that_cannot_be_sent_is_named() -> None:
    """Certificates and digests are no texts; their operations are left out."""
    schemes = {"mutual": {"type": "mutualTLS"}}
    document = with_operation({"security": [{"mutual": []}]}, components={"securitySchemes": schemes})
    kit = openapi_toolkit("api", document, auth={"mutual": "secret-1"})
    assert "of the kind 'mutualTLS'" in kit.left_out["get_x"]
