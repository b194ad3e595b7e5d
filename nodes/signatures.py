"""JSON schemas as short types, for prompts that have to be small: `{id: string, lines?: {sku: string}[]}`.

A type says what a model needs to write an argument or to refer to a field. Bounds and formats that it leaves out are
checked all the same, by the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plans.values import JSON

ANY = "any"
MAX_VALUES = 12
"""Values of an enum that are shown."""
MAX_WORDS = 80
"""Characters of a description that are shown."""
MOST_PLACES = 1_000
"""Places of a schema that are looked at: one that refers to itself sixty times has millions."""
_DEPTHS = (5, 3, 2, 1)
_CUT = "…"


def signature(schema: JSON, longest: int, *, described: bool = False) -> str:
    """A schema as a type of at most `longest` characters: of one that is longer less of the depth is told, and of one
    that is still too long the beginning. With `described` properties have their descriptions."""
    if not isinstance(schema, Mapping) or not schema:
        return ANY
    definitions = _mapping(schema.get("$defs"))
    told = ANY
    for depth, words in [(_DEPTHS[0], described), *((depth, False) for depth in _DEPTHS)]:
        told = _Types(definitions, words).of(schema, depth)
        if len(told) <= longest:
            return told
    return told[: longest - 1] + _CUT


@dataclass(slots=True)
class _Types:
    definitions: Mapping[str, Any]
    described: bool
    left: int = MOST_PLACES

    def of(self, schema: JSON, depth: int) -> str:
        self.left -= 1
        if not isinstance(schema, Mapping) or self.left < 0:
            return ANY
        if "$ref" in schema:
            found = self.definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"))
            return self.of(found, depth - 1) if found is not None and depth > 0 else ANY
        if isinstance(several := schema.get("anyOf", schema.get("oneOf")), list):
            return self._one_of([self.of(each, depth) for each in several])
        if isinstance(values := schema.get("enum", [schema["const"]] if "const" in schema else None), list):
            return _values(values)
        kinds = schema.get("type")
        named = kinds if isinstance(kinds, list) else [kinds]
        return self._one_of([self._of_kind(str(kind), schema, depth) for kind in named])

    def _one_of(self, kinds: list[str]) -> str:
        return "|".join(dict.fromkeys(kinds)) or ANY

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> str:
        if kind == "array":
            items = self.of(schema.get("items"), depth - 1) if depth > 0 else ANY
            return f"({items})[]" if "|" in items else f"{items}[]"
        if kind == "object":
            return self._object(schema, depth)
        if kind == "string" and "format" in schema:
            return str(schema["format"])
        return ANY if kind == "None" else kind

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        properties = _mapping(schema.get("properties"))
        if depth <= 0:
            return "object"
        if not properties:
            more = schema.get("additionalProperties")
            return f"{{[name]: {self.of(more, depth - 1)}}}" if isinstance(more, Mapping) else "object"
        required = schema.get("required")
        required = required if isinstance(required, list | tuple) else ()
        fields = [self._field(name, each, depth, optional=name not in required) for name, each in properties.items()]
        return "{" + ", ".join(fields) + "}"

    def _field(self, name: str, schema: JSON, depth: int, *, optional: bool) -> str:
        told = self.of(schema, depth - 1)
        if optional:
            told = told.removesuffix("|null")
        words = schema.get("description") if self.described and isinstance(schema, Mapping) else None
        return f"{name}{'?' if optional else ''}: {told}" + (f" ({_short(str(words))})" if words else "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _values(values: list[Any]) -> str:
    shown = [f"'{value}'" if isinstance(value, str) else str(value).lower() for value in values[:MAX_VALUES]]
    return "|".join([*shown, _CUT] if len(values) > MAX_VALUES else shown)


def _short(words: str) -> str:
    one_line = " ".join(words.split())
    return one_line if len(one_line) <= MAX_WORDS else one_line[: MAX_WORDS - 1] + _CUT
