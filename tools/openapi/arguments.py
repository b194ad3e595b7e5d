"""What a caller gives an operation: its parameters and its body, under names that do not clash."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from plans.values import JSON
from plans.wording import listed
from tools.openapi.document import Document, Faulty
from tools.openapi.parameters import PLACES, STYLES, Parameter, Place
from tools.openapi.schemas import Schemas

FORM = "application/x-www-form-urlencoded"
_NOT_OURS = frozenset(
    {"accept", "authorization", "connection", "content-length", "content-type", "cookie", "host", "transfer-encoding"}
)  # fmt: skip
"""Headers that are no parameters: OpenAPI says so of three, and the others are the connection's own."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent beside the parameters; `media` is its type, JSON or a form."""

    argument: str
    required: bool
    media: str
    schema: Any


def parameters_of(
    document: Document, schemas: Schemas, item: Mapping[str, Any], operation: Mapping[str, Any], place: str
) -> tuple[tuple[Parameter, ...], dict[str, Any], list[str]]:
    """The parameters, their schemas by argument, and the arguments that must be given. Raises Faulty."""
    declared = _declared(document, item, operation, place)
    parameters, properties, needed = list[Parameter](), dict[str, Any](), list[str]()
    for where, name in sorted(declared, key=lambda each: PLACES.index(each[0])):
        at, given = declared[where, name]
        argument = name if name not in properties else f"{where}_{name}"
        if argument in properties:
            raise Faulty(at, f"there are several parameters {name!r}, which cannot be told apart")
        schema, as_json = _schema(schemas, given, at)
        parameter = _parameter(argument, name, where, given, as_json, schema, at)
        parameters.append(parameter)
        properties[argument] = _described(schema, given)
        if parameter.required and parameter.default is ...:
            needed.append(argument)
    return tuple(parameters), properties, needed


def body_of(
    document: Document, schemas: Schemas, operation: Mapping[str, Any], place: str, taken: Collection[str]
) -> Body | None:
    """The body, in the first form that can be sent. Raises Faulty where one is required and none of them can be."""
    if "requestBody" not in operation:
        return None
    at = f"{place}.requestBody"
    declared = document.resolved(operation["requestBody"], at)
    content = declared.get("content")
    if not isinstance(content, Mapping):
        raise Faulty(at, "has no content")
    required = declared.get("required") is True
    media = _sendable(content)
    if media is None:
        if not required:
            return None
        raise Faulty(at, f"is {listed([str(each) for each in content])}; JSON and {FORM} can be sent, no files")
    schema = schemas.read(content[media].get("schema", True), f"{at}.content.{media}.schema")
    argument = next(name for name in ("body", "request_body", "body_to_send") if name not in taken)
    return Body(argument, required, media, schema)


def _declared(
    document: Document, item: Mapping[str, Any], operation: Mapping[str, Any], place: str
) -> dict[tuple[Place, str], tuple[str, Mapping[str, Any]]]:
    """Parameters by place and name with where they stand; those of the operation replace those of its path."""
    found: dict[tuple[Place, str], tuple[str, Mapping[str, Any]]] = {}
    for owner, at in ((item, place.rpartition(".")[0]), (operation, place)):
        listed_here = owner.get("parameters", [])
        if not isinstance(listed_here, list):
            raise Faulty(f"{at}.parameters", "should be a list")
        for index, each in enumerate(listed_here):
            here = f"{at}.parameters[{index}]"
            given = document.resolved(each, here)
            name, where = given.get("name"), given.get("in")
            if not isinstance(name, str) or not name or where not in PLACES:
                raise Faulty(here, f"should have a name, and in: {', '.join(PLACES)}")
            ours = (where, name) not in document.keys and (where != "header" or name.lower() not in _NOT_OURS)
            if ours:
                found[cast("Place", where), name] = here, given
    return found


def _schema(schemas: Schemas, given: Mapping[str, Any], at: str) -> tuple[Any, bool]:
    if isinstance(content := given.get("content"), Mapping):
        media = next(iter(content), "")
        if not str(media).startswith("application/json") or not isinstance(content[media], Mapping):
            raise Faulty(at, f"is written as {media!r}; JSON is the only content that a parameter can have")
        return schemas.read(content[media].get("schema", True), f"{at}.content.{media}.schema"), True
    return schemas.read(given.get("schema", True), f"{at}.schema"), False


def _parameter(
    argument: str, name: str, where: Place, given: Mapping[str, Any], as_json: bool, schema: Any, at: str
) -> Parameter:
    style = given.get("style", STYLES[where][0])
    if style not in STYLES[where]:
        raise Faulty(at, f"has the style {style!r}; in {where} it can be {', '.join(STYLES[where])}")
    if where == "header" and (not name.isascii() or not name.replace("-", "").replace("_", "").isalnum()):
        raise Faulty(at, f"has the name {name[:80]!r}, which no header can have")
    explode = given.get("explode", style == "form")
    default: JSON = schema.get("default", ...) if isinstance(schema, Mapping) else ...
    required = given.get("required") is True or where == "path"
    return Parameter(argument, name, where, required, style, explode is True, as_json, default)


def _described(schema: Any, given: Mapping[str, Any]) -> Any:
    text = given.get("description")
    if not isinstance(text, str) or not text.strip() or not isinstance(schema, Mapping):
        return schema
    return {**schema, "description": " ".join(text.split())[:500]}


def _sendable(content: Mapping[str, Any]) -> str | None:
    """The first media type that is JSON, else a form; only those whose entry can be read."""
    usable = [str(media) for media, item in content.items() if isinstance(item, Mapping)]
    plain = {media: media.partition(";")[0].strip().lower() for media in usable}
    json = [media for media in usable if plain[media].endswith(("/json", "+json"))]
    return next(iter(json or [media for media in usable if plain[media] == FORM]), None)
