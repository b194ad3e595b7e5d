"""What a caller gives an operation: its parameters and its body, under names that do not clash."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from plans.values import JSON
from plans.wording import listed
from tools.http.messages import CONNECTION, is_header
from tools.openapi.document import Document, Faulty, Reasons
from tools.openapi.parameters import PLACES, STYLES, Parameter, Place
from tools.openapi.schemas import Schemas

Owners = tuple[tuple[Mapping[str, Any], str], ...]
"""Who declares parameters, each with its place in the document."""
FORM = "application/x-www-form-urlencoded"
_NOT_OURS = frozenset(
    {"accept", "authorization", "content-type", "cookie", "x-http-method", "x-http-method-override",
     "x-method-override"}
) | CONNECTION  # fmt: skip
"""Headers that are no parameters: OpenAPI says so of three, some would make another method of a request, and the others
are the connection's own."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent beside the parameters; `media` is its type, JSON or a form."""

    argument: str
    required: bool
    media: str
    schema: Any


def parameters_of(
    document: Document, schemas: Schemas, owners: Owners, reasons: Reasons
) -> tuple[tuple[Parameter, ...], dict[str, Any], list[str]]:
    """The parameters, their schemas by argument, and the arguments that must be given. What cannot be read is left out
    and told to `reasons`."""
    declared = _declared(document, owners, reasons)
    parameters, properties, needed = list[Parameter](), dict[str, Any](), list[str]()
    for where, name in sorted(declared, key=lambda each: PLACES.index(each[0])):
        at, given = declared[where, name]
        argument = name if name not in properties else f"{where}_{name}"
        read = reasons.tried(partial(_parameter, schemas, given, (argument, name, where), at))
        if argument in properties:
            reasons.said.append(f"{at}: there are several parameters {name!r}, which cannot be told apart")
        elif read is not None:
            parameter, properties[argument] = read
            parameters.append(parameter)
            needed += [argument] if parameter.required and parameter.default is ... else []
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
    document: Document, owners: Owners, reasons: Reasons
) -> dict[tuple[Place, str], tuple[str, Mapping[str, Any]]]:
    """Parameters by place and name with where they stand; those of a later owner replace those of one before."""
    found: dict[tuple[Place, str], tuple[str, Mapping[str, Any]]] = {}
    for owner, place in owners:
        listed_here = owner.get("parameters", [])
        if not isinstance(listed_here, list):
            reasons.said.append(f"{place}.parameters: should be a list")
            continue
        for index, each in enumerate(listed_here):
            at = f"{place}.parameters[{index}]"
            given = reasons.tried(partial(document.resolved, each, at))
            if given is None:
                continue
            name, where = given.get("name"), given.get("in")
            if not isinstance(name, str) or not name or where not in PLACES:
                reasons.said.append(f"{at}: should have a name, and in: {', '.join(PLACES)}")
            elif (where, name) not in document.keys and (where != "header" or name.lower() not in _NOT_OURS):
                found[cast("Place", where), name] = at, given
    return found


def _schema(schemas: Schemas, given: Mapping[str, Any], at: str) -> tuple[Any, bool]:
    if isinstance(content := given.get("content"), Mapping):
        media = next(iter(content), "")
        if not str(media).startswith("application/json") or not isinstance(content[media], Mapping):
            raise Faulty(at, f"is written as {media!r}; JSON is the only content that a parameter can have")
        return schemas.read(content[media].get("schema", True), f"{at}.content.{media}.schema"), True
    return schemas.read(given.get("schema", True), f"{at}.schema"), False


def _parameter(
    schemas: Schemas, given: Mapping[str, Any], named: tuple[str, str, Place], at: str
) -> tuple[Parameter, Any]:
    """The parameter and its schema; `named` are its argument, its own name and where it goes. Raises Faulty."""
    argument, name, where = named
    schema, as_json = _schema(schemas, given, at)
    style = given.get("style", STYLES[where][0])
    if style not in STYLES[where]:
        raise Faulty(at, f"has the style {style!r}; in {where} it can be {', '.join(STYLES[where])}")
    if where == "header" and not is_header(name):
        raise Faulty(at, f"has the name {name[:80]!r}, which no header can have")
    explode = given.get("explode", style == "form")
    default: JSON = schema.get("default", ...) if isinstance(schema, Mapping) else ...
    required = given.get("required") is True or where == "path"
    parameter = Parameter(argument, name, where, required, style, explode is True, as_json, default)
    return parameter, _described(schema, given)


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
