"""Schemas of a document as one JSON schema each: references become $defs of its own, and 3.0 becomes JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from plans.values import JSON, unclean
from plans.wording import kind_of
from tools.openapi.document import Document, Faulty

Direction = Literal["request", "response"]
_ONE = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems",
     "unevaluatedProperties"}
)  # fmt: skip
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"dependentSchemas", "patternProperties", "properties"})
_PLAIN = frozenset(
    {"const", "default", "dependentRequired", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
     "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
     "minProperties", "minimum", "multipleOf", "pattern", "required", "title", "type", "uniqueItems"}
)  # fmt: skip
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Schemas:
    """Reads the schemas of one tool's arguments, or of its result: what is read-only is nothing to send, and what is
    write-only is not asked of an answer. `definitions` are those that were referred to so far."""

    def __init__(self, document: Document, direction: Direction) -> None:
        self.definitions: dict[str, Any] = {}
        self._document = document
        self._left_out = "readOnly" if direction == "request" else "writeOnly"
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []

    def read(self, schema: JSON, place: str) -> dict[str, Any] | bool:
        """The schema. Raises Faulty with the place of what cannot be read."""
        read = self._read(schema, place)
        while self._waiting:  # one after the other: chains of references are longer than a stack is deep
            ref = self._waiting.pop()
            self.definitions[self._names[ref]] = self._read(self._document.at(ref, place), ref)
        return read

    def _read(self, schema: JSON, place: str) -> dict[str, Any] | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise Faulty(place, f"is {kind_of(schema)}, and should be a schema")
        if isinstance(ref := schema.get("$ref"), str):
            return self._referring(schema, ref, place)
        if "$dynamicRef" in schema:
            raise Faulty(place, "has a $dynamicRef, which is not followed")
        read = self._parts(schema, place)
        self._without_the_other_way(read, schema)
        return _modern(read, schema) if self._document.early else read

    def _parts(self, schema: Mapping[str, Any], place: str) -> dict[str, Any]:
        read = {key: value for key, value in schema.items() if key in _PLAIN}
        for key, value in read.items():
            if problem := next(iter(unclean(value)), None):
                raise Faulty(f"{place}.{key}", f"cannot be used: it {problem[1]}")
        for key, value in schema.items():
            if key in _ONE:
                read[key] = self._read(value, f"{place}.{key}")
            elif key in _SEVERAL:
                read[key] = [self._read(item, f"{place}.{key}[{n}]") for n, item in enumerate(_list(value, place, key))]
            elif key in _NAMED:
                named = _object(value, place, key)
                read[key] = {name: self._read(item, f"{place}.{key}.{name}") for name, item in named.items()}
        return read

    def _referring(self, schema: Mapping[str, Any], ref: str, place: str) -> dict[str, Any]:
        """A reference into `definitions`, where the schema is read once, however often it refers to itself."""
        if ref not in self._names:
            self._document.at(ref, place)
            name = self._names[ref] = self._name(ref)
            self.definitions[name] = True
            self._waiting.append(ref)
        read: dict[str, Any] = {"$ref": f"#/$defs/{self._names[ref]}"}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if beside and not self._document.early:  # 3.0 says that what stands beside a reference means nothing
            more = self._read(beside, place)
            read = {**more, **read} if isinstance(more, dict) else read
        return read

    def _name(self, ref: str) -> str:
        base = _UNSAFE.sub("_", ref.rpartition("/")[2])[:60] or "schema"
        name, number = base, 1
        while name in self.definitions:
            number += 1
            name = f"{base}_{number}"
        return name

    def _without_the_other_way(self, read: dict[str, Any], schema: Mapping[str, Any]) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        others = {name for name, item in properties.items() if self._goes_the_other_way(item)}
        if others and isinstance(read.get("required"), list):
            read["required"] = [name for name in read["required"] if name not in others]
        if self._left_out == "readOnly":
            read["properties"] = {name: item for name, item in read["properties"].items() if name not in others}

    def _goes_the_other_way(self, schema: JSON) -> bool:
        if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str) and self._left_out not in schema:
            schema = self._document.resolved(schema, "")
        return isinstance(schema, Mapping) and schema.get(self._left_out) is True


def _modern(read: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of 3.0 in JSON Schema's words: exclusive bounds are numbers, and null is a type."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(flag := read.get(exclusive), bool):
            del read[exclusive]
            if flag and bound in read:
                read[exclusive] = read.pop(bound)
    if schema.get("nullable") is not True:
        return read
    if isinstance(read.get("enum"), list) and None not in read["enum"]:
        read["enum"] = [*read["enum"], None]
    if isinstance(read.get("type"), str):
        return {**read, "type": [read["type"], "null"]}
    return {"anyOf": [read, {"type": "null"}]} if "type" not in read and read else read


def _list(value: JSON, place: str, key: str) -> list[JSON]:
    if not isinstance(value, list):
        raise Faulty(f"{place}.{key}", f"is {kind_of(value)}, and should be a list")
    return value


def _object(value: JSON, place: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Faulty(f"{place}.{key}", f"is {kind_of(value)}, and should be an object")
    return value
