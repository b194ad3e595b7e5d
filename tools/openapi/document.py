"""An OpenAPI document as it was given: read strictly, told apart from what is none, and its references followed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from plans.errors import ConfigurationError
from plans.json_text import NotJSON, strict_json
from plans.values import JSON, dotted, too_deep
from plans.wording import kind_of, listed
from plans.yaml_text import NotYAML, read_yaml
from tools.pointers import followed

MAX_BYTES = 20_000_000
_MOST = 10

T = TypeVar("T")


class Faulty(Exception):
    """Why a part of a document cannot be used; `place` is where it stands."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}" if place else why)


@dataclass
class Reasons:
    """All that is wrong with one operation, in the order in which it was found."""

    said: list[str] = field(default_factory=list)

    def tried(self, read: Callable[[], T]) -> T | None:
        """What reading gives; None where it cannot be read, and then the reason is kept."""
        try:
            return read()
        except Faulty as fault:
            self.said.append(str(fault))
            return None

    def refuse(self) -> None:
        """Raise Faulty with every reason, if there is one."""
        if self.said:
            more = f"; and {len(self.said) - _MOST} more" if len(self.said) > _MOST else ""
            raise Faulty("", "; ".join(self.said[:_MOST]) + more)


@dataclass(frozen=True)
class Document:
    """The whole of it; `early` is True for OpenAPI 3.0, whose schemas are not quite JSON Schema."""

    root: Mapping[str, Any]
    early: bool

    def at(self, ref: str, place: str) -> JSON:
        """What a reference within the document names. Raises Faulty for one that leads elsewhere or to nothing."""
        if ref.partition("/")[0] != "#":
            raise Faulty(
                place, f"$ref {ref[:120]!r} leads out of the document or to a mark in it, which is not followed"
            )
        try:
            return followed(self.root, ref)
        except LookupError:
            raise Faulty(place, f"$ref {ref[:120]!r} names nothing") from None

    def resolved(self, value: JSON, place: str) -> Mapping[str, Any]:
        """An object, or what its $ref leads to, over as many references as there are. Raises Faulty."""
        seen: set[str] = set()
        while isinstance(value, Mapping) and isinstance(ref := value.get("$ref"), str):
            if ref in seen:
                raise Faulty(place, f"$ref {ref[:120]!r} leads back to itself")
            seen.add(ref)
            value = self.at(ref, place)
        if not isinstance(value, Mapping):
            raise Faulty(place, f"is {kind_of(value)}, and should be an object")
        return value

    @property
    def schemes(self) -> Mapping[str, Any]:
        """The security schemes by name."""
        components = self.root.get("components")
        found = components.get("securitySchemes") if isinstance(components, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Where credentials of these schemes go, as place and name: no parameter of an operation has to bring them."""
        found = [each for each in self.schemes.values() if isinstance(each, Mapping) and each.get("type") == "apiKey"]
        return frozenset((str(each.get("in")), str(each.get("name"))) for each in found)


def load(source: str | Path | Mapping[str, Any]) -> Document:
    """A document from a file, JSON or YAML, or from its value. ConfigurationError for what is no OpenAPI 3."""
    if isinstance(source, Mapping):
        return _checked(_as_json(source), "the given document")
    if str(source).startswith(("http:/", "https:/")):
        raise ConfigurationError("an OpenAPI document is a file and is not fetched; save it, and name the file")
    path = Path(source)
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8-sig") if size <= MAX_BYTES else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ConfigurationError(f"the OpenAPI document {path} cannot be read: {why}") from None
    if size > MAX_BYTES:
        raise ConfigurationError(f"the OpenAPI document {path} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    return _checked(_parsed(text, path), str(path))


def _as_json(source: Mapping[str, Any]) -> JSON:
    """The value as JSON has it: readers of YAML make numbers of keys such as 200, and dates of what looks like one."""
    if too_deep(source):
        raise ConfigurationError("the given document is nested too deeply")
    return json.loads(json.dumps(source, default=str))


def _parsed(text: str, path: Path) -> JSON:
    if text.lstrip().startswith("{"):
        try:
            return strict_json(text)
        except NotJSON as error:
            raise ConfigurationError(f"the OpenAPI document {path} is no JSON: {error}") from None
    try:
        value, notes = read_yaml(text)
    except NotYAML as error:
        raise ConfigurationError(f"the OpenAPI document {path} is no YAML: {error}") from None
    if notes:
        told = "; ".join(f"{dotted(note.path)}: {note.message}" for note in notes[:5])
        raise ConfigurationError(f"the OpenAPI document {path} says things twice: {told}")
    return value


def _checked(root: JSON, where: str) -> Document:
    if not isinstance(root, Mapping):
        raise ConfigurationError(f"{where} is {kind_of(root)}, and an OpenAPI document is an object")
    if "swagger" in root:
        raise ConfigurationError(
            f"{where} is Swagger {str(root['swagger'])[:10]}, which is not read; convert it to OpenAPI 3 first"
        )
    version = str(root.get("openapi", ""))
    if not version.startswith(("3.0", "3.1")):
        said = f"says openapi: {version[:20]}" if version else f"has no openapi field, but {listed(list(root), 5)}"
        raise ConfigurationError(f"{where} {said}; OpenAPI 3.0 and 3.1 are read")
    if not isinstance(root.get("paths"), Mapping):
        raise ConfigurationError(f"{where} has no paths, so there is nothing to call")
    if too_deep(root):
        raise ConfigurationError(f"{where} is nested too deeply")
    return Document(root, early=version.startswith("3.0"))
