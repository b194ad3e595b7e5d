"""The operations of a document, each as it can be called; what cannot be is named with its place and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from plans.values import JSON, sha256_of
from tools.openapi.arguments import Body, Owners, body_of, parameters_of
from tools.openapi.document import Document, Faulty, Reasons
from tools.openapi.parameters import Parameter
from tools.openapi.schemas import Schemas

METHODS = ("get", "head", "options", "put", "post", "patch", "delete")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_DESCRIPTION = 2_000
_HOLE = re.compile(r"\{([^{}]*)\}")
_SUCCESS = re.compile(r"2[0-9][0-9]|2[xX][xX]")
_JSON = re.compile(r"application/json|text/json|[\w.+-]+/[\w.+-]+\+json|\*/\*")

Security = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Listed:
    """What names an operation; `path` is the template."""

    method: str
    path: str
    operation_id: str | None

    @property
    def title(self) -> str:
        """How a person finds it in the document."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Unusable(Listed):
    """An operation that cannot be called, with the place and the reason."""

    why: str


@dataclass(frozen=True)
class Operation(Listed):
    """One operation. `arguments` is the JSON schema of what a caller gives; `answers` by status (`200`, `2XX`,
    `default`) the schema of a JSON body, None where nothing is said of one. `security` are alternatives, each a set of
    schemes that are all needed; the empty one needs none."""

    description: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    security: Security = ((),)

    @property
    def reads(self) -> bool:
        """Whether its method promises to change nothing."""
        return self.method in READING

    @property
    def digest(self) -> str:
        """Names what the document says of it, so that no result is kept for an operation that has changed."""
        return sha256_of([self.title, self.description, self.arguments, dict(self.answers)])[:16]

    @property
    def result(self) -> dict[str, Any] | None:
        """The JSON schema of what it gives; None where nothing is said of one."""
        known: list[Any] = []
        for schema in self.answers.values():
            if schema is None:
                return None
            known += [schema] if schema not in known else []
        if len(known) == 1:
            return known[0] if isinstance(known[0], dict) else None
        return {"anyOf": known} if known and all("$defs" not in each for each in known) else None

    def with_headers_filled(self, names: Collection[str]) -> Operation:
        """The same, where configuration sets these headers: nobody is asked for them as arguments."""
        filled = {name.lower() for name in names}
        asked = tuple(each for each in self.parameters if each.place != "header" or each.name.lower() not in filled)
        gone = {each.argument for each in self.parameters} - {each.argument for each in asked}
        properties = {name: item for name, item in self.arguments["properties"].items() if name not in gone}
        needed = [name for name in self.arguments.get("required", []) if name not in gone]
        arguments = {key: value for key, value in self.arguments.items() if key != "required"}
        arguments |= {"properties": properties, **({"required": needed} if needed else {})}
        return replace(self, parameters=asked, arguments=arguments)

    def answering(self, status: int) -> str | None:
        """The key of `answers` that speaks of a status: its own, that of its hundred, or the one for all others."""
        names = (str(status), f"{status // 100}XX", "default")
        return next((name for name in names if name in self.answers), None)


def operations(document: Document) -> Iterator[Operation | Unusable]:
    """Every operation in the order of the document, or why it cannot be used."""
    for path, item in document.root["paths"].items():
        if path.startswith("x-"):
            continue
        try:
            whole = document.resolved(item, f"paths.{path}")
        except Faulty as fault:
            yield Unusable("ANY", path, None, str(fault))
            continue
        for method in METHODS:
            if method in whole:
                yield _operation(document, whole, method, path)


def _operation(document: Document, item: Mapping[str, Any], method: str, path: str) -> Operation | Unusable:
    place = f"paths.{path}.{method}"
    own = item[method].get("operationId") if isinstance(item[method], Mapping) else None
    operation_id = own if isinstance(own, str) else None
    try:
        return _read(document, item, Listed(method.upper(), path, operation_id), place)
    except Faulty as fault:
        return Unusable(method.upper(), path, operation_id, str(fault))


def _read(document: Document, item: Mapping[str, Any], named: Listed, place: str) -> Operation:
    path = named.path
    read = document.resolved(item[named.method.lower()], place)
    reasons, schemas = Reasons(), Schemas(document, "request")
    parameters, properties, needed = parameters_of(document, schemas, _owners(item, read, place), reasons)
    if not reasons.said:  # a parameter that could not be read would be missed in the path, too
        reasons.tried(lambda: _check_path(path, parameters, place))
    if read.get("servers", item.get("servers")):
        reasons.said.append(f"{place}: it has servers of its own, which are not followed")
    body = reasons.tried(lambda: body_of(document, schemas, read, place, taken={*properties}))
    if body is not None:
        properties[body.argument] = body.schema
        needed += [body.argument] if body.required else []
    answers = _answers(document, read, place, reasons)
    security = reasons.tried(lambda: _security(read.get("security", document.root.get("security")), place))
    reasons.refuse()
    arguments: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if needed:
        arguments["required"] = needed
    if schemas.definitions:
        arguments["$defs"] = schemas.definitions
    return Operation(
        method=named.method,
        path=path,
        operation_id=named.operation_id,
        description=_described(read),
        parameters=parameters,
        body=body,
        arguments=arguments,
        answers=answers,
        security=security or ((),),
    )


def _owners(item: Mapping[str, Any], read: Mapping[str, Any], place: str) -> Owners:
    """Who declares parameters: the path for all of its methods, then the operation."""
    return ((item, place.rpartition(".")[0]), (read, place))


def _check_path(path: str, parameters: tuple[Parameter, ...], place: str) -> None:
    if not path.startswith("/"):
        raise Faulty(place, "its path does not begin with /")
    holes = _HOLE.findall(path)
    given = [parameter.name for parameter in parameters if parameter.place == "path"]
    if lacking := sorted(set(holes) - set(given)):
        raise Faulty(place, f"its path has {{{lacking[0]}}}, and no parameter of this name is declared for it")
    if strange := sorted(set(given) - set(holes)):
        raise Faulty(place, f"its parameter {strange[0]!r} is in path, which has no such hole")


def _answers(document: Document, read: Mapping[str, Any], place: str, reasons: Reasons) -> dict[str, Any]:
    responses = read.get("responses")
    if not isinstance(responses, Mapping):
        return {}
    found = {status: item for status, item in responses.items() if _SUCCESS.fullmatch(str(status))}
    if not found and "default" in responses:
        found = {"default": responses["default"]}
    answers = {}
    for status, item in found.items():
        at = f"{place}.responses.{status}"
        name = status if status == "default" else str(status).upper()
        answers[name] = reasons.tried(partial(_answer, document, item, at))
    return answers


def _answer(document: Document, response: JSON, place: str) -> Any:
    content = document.resolved(response, place).get("content")
    if not isinstance(content, Mapping):
        return None
    for media, item in content.items():
        if _JSON.fullmatch(str(media).partition(";")[0].strip().lower()) and isinstance(item, Mapping):
            if "schema" not in item:
                return None
            schemas = Schemas(document, "response")
            schema = schemas.read(item["schema"], f"{place}.content.{media}.schema")
            return (
                {**schema, "$defs": schemas.definitions} if isinstance(schema, dict) and schemas.definitions else schema
            )
    return None


def _security(declared: JSON, place: str) -> Security:
    if declared is None:
        return ((),)
    if not isinstance(declared, list) or not all(isinstance(each, Mapping) for each in declared):
        raise Faulty(f"{place}.security", "should be a list of objects")
    return tuple(tuple(str(name) for name in each) for each in declared) or ((),)


def _described(read: Mapping[str, Any]) -> str:
    """Summary and description as one text, without what steers a terminal or hides from a reader."""
    parts = [text.strip() for key in ("summary", "description") if isinstance(text := read.get(key), str)]
    whole = "\n".join(dict.fromkeys(part for part in parts if part))
    lines = ("".join(c for c in line if c.isprintable()) for line in whole.splitlines())
    text = "\n".join(lines)
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"
