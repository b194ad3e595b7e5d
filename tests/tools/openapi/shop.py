"""A document of a small shop, and its toolkit on a server of this machine."""

from __future__ import annotations

from typing import Any

from tests.tools.http.flaky import ADDRESS, HOST, FlakyServer
from tools.openapi import OpenApiToolkit, openapi_toolkit
from tools.registry import Registry

ORDER = {
    "type": "object",
    "required": ["id", "status"],
    "properties": {"id": {"type": "string", "readOnly": True}, "status": {"enum": ["open", "sent"]}},
}


def answer(schema: Any = None, status: str = "200") -> dict[str, Any]:
    """Responses with one success, JSON of this schema."""
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {status: {"description": "fine", **content}}


def parameter(name: str, place: str = "query", schema: Any = None, **more: Any) -> dict[str, Any]:
    """A parameter, a text unless a schema is given."""
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema or {"type": "string"}, **required, **more}


def body(schema: Any, media: str = "application/json", *, required: bool = True) -> dict[str, Any]:
    """A request body of one media type."""
    return {"required": required, "content": {media: {"schema": schema}}}


SHOP: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "A shop", "version": "1"},
    "servers": [{"url": "https://{region}.shop.example.com/v1", "variables": {"region": {"default": "eu"}}}],
    "security": [{"token": []}],
    "paths": {
        "/orders/{id}": {
            "parameters": [parameter("id", "path")],
            "get": {
                "operationId": "getOrder",
                "summary": "Look one order up.",
                "responses": answer({"$ref": "#/components/schemas/Order"}),
            },
            "put": {
                "operationId": "replaceOrder",
                "requestBody": body({"$ref": "#/components/schemas/Order"}),
                "responses": answer({"$ref": "#/components/schemas/Order"}),
            },
            "delete": {"operationId": "removeOrder", "responses": answer(status="204")},
        },
        "/orders": {
            "get": {
                "operationId": "listOrders",
                "parameters": [parameter("status"), parameter("limit", schema={"type": "integer", "maximum": 100})],
                "responses": answer({"type": "array", "items": {"$ref": "#/components/schemas/Order"}}),
            },
            "post": {
                "operationId": "createOrder",
                "requestBody": body({"$ref": "#/components/schemas/Order"}),
                "responses": answer({"$ref": "#/components/schemas/Order"}, "201"),
            },
        },
        "/health": {"get": {"security": [], "responses": answer()}},
    },
    "components": {
        "schemas": {"Order": ORDER},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
}

SECRET = "tok-5f3a9c"


def of_paths(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A document of these paths, of OpenAPI 3.1 unless said otherwise."""
    return {"openapi": "3.1.0", "servers": [{"url": "https://api.example.com"}], "paths": paths, **more}


def with_operation(operation: dict[str, Any], path: str = "/x", method: str = "get", **more: Any) -> dict[str, Any]:
    """A document with one operation."""
    return of_paths({path: {method: {"responses": answer(), **operation}}}, **more)


def shop_at(server: FlakyServer, document: dict[str, Any] = SHOP, **more: Any) -> OpenApiToolkit:
    """The toolkit of a document at a test's server."""
    given = {"auth": {"token": SECRET}, "private_hosts": [f"{HOST}={ADDRESS}"], **more}
    return openapi_toolkit("shop", document, base_url=f"{server.scheme}://{HOST}:{server.port}/v1", **given)


def tools_of(document: dict[str, Any], **more: Any) -> Registry:
    """The registered tools of a document that nobody is going to call."""
    return Registry.of(openapi_toolkit("api", document, **more))
