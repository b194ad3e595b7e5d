"""What goes over the wire: each style of a parameter, and that no value gets out of its place."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.failure import ToolFailure
from tests.tools.openapi.shop import body, parameter, with_operation
from tools.http.fetch import Reach
from tools.http.hosts import Hosts
from tools.http.messages import Request
from tools.http.urls import parse
from tools.openapi.authentication import credentials_for
from tools.openapi.calling import Endpoint, request_for
from tools.openapi.config import Service
from tools.openapi.document import load
from tools.openapi.operations import Operation, operations

LIST = {"type": "array"}
OBJECT = {"type": "object"}
AB = {"a": 1, "b": "x y"}


def request(document: dict[str, Any], args: dict[str, Any], *, auth: dict[str, str] | None = None) -> Request:
    """The request that arguments make of a document's one operation."""
    read = load(document)
    (operation,) = operations(read)
    assert isinstance(operation, Operation), operation
    credentials = credentials_for(read, operation, Service.model_validate({"document": document, "auth": auth or {}}))
    assert not isinstance(credentials, str)
    endpoint = Endpoint(operation, parse("https://api.example.com/v1/"), Reach(Hosts(), 1), credentials, "Key")
    return request_for(endpoint, args, "key-1")


def with_parameter(*parameters: dict[str, Any], path: str = "/x") -> dict[str, Any]:
    """A document of one operation with these parameters."""
    return with_operation({"parameters": list(parameters)}, path)


@pytest.mark.parametrize(
    ("given_parameter", "value", "query"),
    [
        (parameter("q"), "a&b=c#d?e/f\r\n%", "q=a%26b%3Dc%23d%3Fe%2Ff%0D%0A%25"),
        (parameter("q r"), "ü", "q%20r=%C3%BC"),
        (parameter("n", schema={"type": "number"}), 2.5, "n=2.5"),
        (parameter("b", schema={"type": "boolean"}), True, "b=true"),
        (parameter("l", schema=LIST), ["a", "b,c"], "l=a&l=b%2Cc"),
        (parameter("l", schema=LIST, explode=False), ["a", "b,c"], "l=a,b%2Cc"),
        (parameter("l", schema=LIST, style="spaceDelimited", explode=False), ["a", "b"], "l=a%20b"),
        (parameter("l", schema=LIST, style="pipeDelimited", explode=False), ["a", "b|"], "l=a%7Cb%7C"),
        (parameter("l", schema=LIST), [], ""),
        (parameter("o", schema=OBJECT), AB, "a=1&b=x%20y"),
        (parameter("o", schema=OBJECT, explode=False), AB, "o=a,1,b,x%20y"),
        (parameter("o", schema=OBJECT, style="deepObject"), AB, "o%5Ba%5D=1&o%5Bb%5D=x%20y"),
        ({"name": "j", "in": "query", "content": {"application/json": {}}}, {"a": [1]}, "j=%7B%22a%22%3A%20%5B1%5D%7D"),
    ],
)
def test_a_query_is_written_as_declared(given_parameter: dict[str, Any], value: Any, query: str) -> None:
    """form, spaceDelimited, pipeDelimited, deepObject and JSON, exploded or not, all escaped."""
    target = request(with_parameter(given_parameter), {given_parameter["name"]: value}).target
    assert target.path == (f"/v1/x?{query}" if query else "/v1/x")


@pytest.mark.parametrize(
    ("schema", "explode", "value", "written"),
    [
        (None, False, "A 12", "A%2012"),
        (None, False, "a/b", "a%2Fb"),
        (None, False, "a?b#c;d", "a%3Fb%23c%3Bd"),
        (None, False, "a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
        (None, False, "{id}", "%7Bid%7D"),
        (None, False, "%2e%2e", "%252e%252e"),
        (None, False, "..a", "..a"),
        ({"type": "integer"}, False, 7, "7"),
        (LIST, False, ["a", "b/c"], "a,b%2Fc"),
        (OBJECT, False, AB, "a,1,b,x%20y"),
        (OBJECT, True, AB, "a=1,b=x%20y"),
    ],
)
def test_a_path_is_written_as_declared(schema: Any, explode: bool, value: Any, written: str) -> None:
    """simple, exploded or not; what would end the segment is escaped."""
    document = with_parameter(parameter("id", "path", schema, explode=explode), path="/orders/{id}/lines")
    assert request(document, {"id": value}).target.path == f"/v1/orders/{written}/lines"


@pytest.mark.parametrize("value", ["", ".", "..", "../admin", "a/../b", "a/..", "..\\b", "./x", []])
def test_a_value_cannot_lead_to_another_path(value: Any) -> None:
    """What a server could take for a way up, or for no segment at all, is refused, escaped or not."""
    document = with_parameter(parameter("id", "path", {}), path="/orders/{id}")
    with pytest.raises(ToolFailure, match="which would be another path") as refused:
        request(document, {"id": value})
    assert refused.value.code == "INVALID_ARGS"


@given(st.text(min_size=1), st.text())
def test_no_text_gets_out_of_its_place(segment: str, word: str) -> None:
    """For any texts there are the same slashes, one ? and no line break; undone, the escapes give the texts back."""
    document = with_parameter(parameter("id", "path"), parameter("q"), path="/a/{id}/b")
    try:
        path = request(document, {"id": segment, "q": word}).target.path
    except (ToolFailure, UnicodeEncodeError):
        return
    place, _, query = path.partition("?")
    assert (place.count("/"), path.count("?"), path.isascii(), path.isprintable()) == (4, 1, True, True)
    assert (unquote(place.split("/")[3]), unquote(query.partition("=")[2])) == (segment, word)


def test_null_is_nothing_to_write() -> None:
    """Models give null for what they leave out: no query, header or cookie is made of it, and no path at all."""
    schema = {"type": ["string", "null"]}
    places = [parameter(place, place, schema) for place in ("query", "header", "cookie")]
    sent = request(with_parameter(*places), dict.fromkeys(("query", "header", "cookie")))
    assert (sent.target.path, set(sent.headers)) == ("/v1/x", {"Accept", "Key"})
    with pytest.raises(ToolFailure, match="is empty"):
        request(with_parameter(parameter("id", "path", schema), path="/x/{id}"), {"id": None})


def test_headers_and_cookies_are_written_as_declared() -> None:
    """A cookie is escaped; a header is taken as it is, or refused where it could end the line."""
    document = with_parameter(
        parameter("X-Tags", "header", LIST), parameter("lang", "cookie"), parameter("Host", "header")
    )
    sent = request(document, {"X-Tags": ["a", "b"], "lang": "e; n=1"})
    assert (sent.headers["X-Tags"], sent.headers["Cookie"]) == ("a,b", "lang=e%3B%20n%3D1")
    for value in (["a\r\nX: y"], ["ü"], ["\x00"]):
        with pytest.raises(ToolFailure, match="what a header cannot hold"):
            request(document, {"X-Tags": value})


@pytest.mark.parametrize(
    ("media", "value", "content"),
    [
        ("application/json", {"a": "ü", "n": None}, '{"a":"ü","n":null}'),
        ("application/vnd.shop+json", [1], "[1]"),
        ("application/json", None, "null"),
        ("application/x-www-form-urlencoded", {"a": "x&y", "l": [1, True], "o": {"k": 1}},
        "a=x%26y&l=1&l=true&o=%7B%22k%22%3A%201%7D"),
    ],
)  # fmt: skip
def test_a_body_is_written_as_declared(media: str, value: Any, content: str) -> None:
    """JSON, its relatives, and forms."""
    sent = request(with_operation({"requestBody": body({}, media)}, method="post"), {"body": value})
    assert sent.content is not None
    assert (sent.content.decode(), sent.headers["Content-Type"]) == (content, media)


def test_a_required_parameter_with_a_default_may_be_left_out() -> None:
    """It is sent with its default; an optional one is not sent at all."""
    required = parameter("version", schema={"type": "string", "default": "v2"}, required=True)
    optional = parameter("page", schema={"type": "integer", "default": 1})
    assert request(with_parameter(required, optional), {}).target.path == "/v1/x?version=v2"


SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
    "oauth": {"type": "oauth2", "flows": {}},
}


@pytest.mark.parametrize(
    ("scheme", "header", "value"),
    [
        ("bearer", "Authorization", "Bearer u:p"),
        ("oauth", "Authorization", "Bearer u:p"),
        ("basic", "Authorization", f"Basic {base64.b64encode(b'u:p').decode()}"),
        ("header", "X-Key", "u:p"),
        ("cookie", "Cookie", "session=u:p"),
        ("query", "", ""),
    ],
)
def test_credentials_go_where_the_document_says(scheme: str, header: str, value: str) -> None:
    """Bearer, basic and keys in headers, queries and cookies; a parameter that stands for one is no argument."""
    operation = {"security": [{scheme: []}], "parameters": [parameter("X-Key", "header"), parameter("key")]}
    document = with_operation(operation, components={"securitySchemes": SCHEMES})
    sent = request(document, {}, auth={scheme: "u:p"})
    if header:
        assert sent.headers[header] == value
    else:
        assert sent.target.path == "/v1/x?key=u%3Ap"
    assert "u:p" not in sent.target.shown


def test_the_alternative_that_is_configured_is_sent() -> None:
    """Of several ways the first that can be gone, all schemes of it; of an optional one,
    rather the one with secrets."""
    operation: dict[str, Any] = {"security": [{}, {"bearer": [], "header": []}, {"basic": []}]}
    document = with_operation(operation, components={"securitySchemes": SCHEMES})
    both = request(document, {}, auth={"bearer": "t", "header": "k"})
    assert (both.headers["Authorization"], both.headers["X-Key"]) == ("Bearer t", "k")
    assert "Authorization" not in request(document, {}).headers


def test_the_key_of_an_effect_is_sent_in_its_header() -> None:
    """The idempotency key goes where configuration says."""
    assert request(with_operation({}, method="post"), {}).headers["Key"] == "key-1"
