"""A mock result: the least value that a JSON schema allows, the same for the same schema."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plans.failure import ToolFailure
from plans.values import JSON
from tools.error_flags import refuse_empty, refuse_flagged
from tools.pointers import followed

if TYPE_CHECKING:
    from tools.fallbacks import Fallback
    from tools.tool import Tool

WORD = "mock"
"""What a text says that may say anything: whoever reads it sees what it is."""
NUMERALS = ("0", "1")
"""What texts say instead where they have to be numbers."""
DEEPEST = 40
"""Nesting of a schema beyond which a mock is given up."""

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "date": "1970-01-01",
        "date-time": "1970-01-01T00:00:00Z",
        "time": "00:00:00Z",
        "duration": "PT0S",
        "uuid": "00000000-0000-4000-8000-000000000000",
        "email": "mock@example.invalid",
        "idn-email": "mock@example.invalid",
        "name-email": "mock@example.invalid",
        "hostname": "example.invalid",
        "uri": "https://example.invalid/",
        "uri-reference": "https://example.invalid/",
        "iri": "https://example.invalid/",
        "ipv4": "192.0.2.1",
        "ipv6": "2001:db8::1",
        "ipvanyaddress": "192.0.2.1",
        "json-pointer": "",
        "regex": "mock",
    }
)
"""One text of each format, from what is set aside for examples where there is such a thing."""
_CANDIDATES = ("", WORD, "Mock", "MOCK", "0", "0.0", "m", "M", "00", "000", "0000", "mock0", "mock-0", "A0", "true")


class NoMock(ValueError):
    """A schema from which no mock can be built; the text says where and why."""


def mock_value(tool: Tool, fallback: Fallback) -> JSON:
    """The value of a tool's mock, checked like a result of the tool itself. Raises NoMock."""
    if fallback.mock is None:
        raise NoMock("it is no mock")
    if fallback.mock is not True:
        return _checked(tool, fallback.mock.value)
    if tool.output_schema is None:
        raise NoMock("the tool does not declare what it returns")
    why = ""
    least = int(tool.spec.never_empty is True)
    # Least first. The schema of a Decimal says no more than that it is a text, and a part may have to hold something.
    for word, inside in product((WORD, *NUMERALS), (0, 1)):
        try:
            return _checked(tool, built(tool.output_schema, least=max(least, inside), inside=inside, word=word))
        except NoMock as error:
            why = why or str(error)
    raise NoMock(why)


def _checked(tool: Tool, value: JSON) -> JSON:
    try:
        refuse_flagged(tool.spec, value)
        stored = tool.result.stored(value)
        refuse_empty(tool.spec, stored)
    except ToolFailure as error:
        raise NoMock(error.message) from None
    return stored


def built(schema: JSON, *, least: int = 0, inside: int = 0, word: str = WORD) -> JSON:
    """The least value of a schema: every required field, `least` characters or elements and as many `inside` it, and
    `word` for texts that may say anything. Raises NoMock."""
    return _Builder(schema, word, inside).value(schema, (), least)


@dataclass(frozen=True, slots=True)
class _Builder:
    root: JSON
    word: str
    inside: int

    def value(self, schema: JSON, within: tuple[str, ...], least: int = 0) -> JSON:
        """A value of this schema; `within` are the references on the way here, `least` how much it holds at least."""
        if len(within) > DEEPEST:
            raise NoMock("it is nested too deeply")
        if schema is False:
            raise NoMock("nothing is allowed there")
        if not isinstance(schema, Mapping):
            return None
        written = [each for each in _written_down(schema) if not least or each not in ("", [], {})]
        if written:
            return written[0]
        return self._composed(schema, within, least)

    def _composed(self, schema: Mapping[str, Any], within: tuple[str, ...], least: int) -> JSON:
        if "$ref" in schema:
            return self._referred(schema, within, least)
        if "allOf" in schema:
            return self.value(self._merged(schema), within, least)
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            return self._first(schema, choices, within, least)
        return self._of_kind(schema, within, least)

    def _referred(self, schema: Mapping[str, Any], within: tuple[str, ...], least: int) -> JSON:
        ref = str(schema["$ref"])
        if ref in within:
            raise NoMock(f"{ref} holds itself, without an end")
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return self.value({**self._pointed(ref), **beside}, (*within, ref), least)

    def _pointed(self, ref: str) -> Mapping[str, Any]:
        try:
            found = followed(self.root, ref)
        except LookupError:
            raise NoMock(f"{ref} is not in the schema") from None
        if not isinstance(found, Mapping):
            raise NoMock(f"{ref} is not a schema in the schema")
        return found

    def _merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The parts of allOf as one schema: fields and what is required are joined, else the last part counts."""
        parts = [self._pointed(part["$ref"]) if "$ref" in part else part for part in schema["allOf"]]
        parts.append({name: value for name, value in schema.items() if name != "allOf"})
        merged: dict[str, Any] = {}
        for part in parts:
            fields = {**merged.get("properties", {}), **part.get("properties", {})}
            required = [*merged.get("required", ()), *part.get("required", ())]
            merged = {**merged, **part, "properties": fields, "required": list(dict.fromkeys(required))}
        return merged

    def _first(self, schema: Mapping[str, Any], choices: list[Any], within: tuple[str, ...], least: int) -> JSON:
        """The first choice that has an end; null only where there is no other."""
        beside = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf", "discriminator")}
        why = "no choice is left"
        for choice in sorted(choices, key=lambda each: isinstance(each, Mapping) and each.get("type") == "null"):
            try:
                return self.value({**beside, **choice} if isinstance(choice, Mapping) else choice, within, least)
            except NoMock as error:
                why = str(error)
        raise NoMock(why)

    def _of_kind(self, schema: Mapping[str, Any], within: tuple[str, ...], least: int) -> JSON:
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        match kind:
            case "object":
                return self._object(schema, within, least)
            case "array":
                return list(self._items(schema, within, least))
            case "string":
                return _text(schema, least, self.word)
            case "integer":
                return int(_number(schema, whole=True))
            case "number":
                return float(_number(schema, whole=False))
            case "boolean":
                return False
        return WORD if kind is None and least else None

    def _object(self, schema: Mapping[str, Any], within: tuple[str, ...], least: int) -> JSON:
        """The required fields; those that the tool computes itself are its own, and come by themselves."""
        fields = schema.get("properties", {})
        names = [name for name in schema.get("required", ()) if not _is_computed(fields.get(name))]
        least = max(least, schema.get("minProperties", 0))
        names += [name for name in fields if name not in names and not _is_computed(fields[name])][
            : max(0, least - len(names))
        ]
        more = schema.get("additionalProperties", True)
        found = {name: self._field(fields.get(name, more), name, within) for name in names}
        for number in range(len(found), least):
            found[f"{WORD}{number or ''}"] = self._field(more, "an entry", within)
        return found

    def _field(self, schema: JSON, name: str, within: tuple[str, ...]) -> JSON:
        try:
            return self.value(schema, (*within, ""), self.inside)
        except NoMock as error:
            raise NoMock(f"{name}: {error}") from None

    def _items(self, schema: Mapping[str, Any], within: tuple[str, ...], least: int) -> Iterator[JSON]:
        first = schema.get("prefixItems", [])
        for index in range(max(least, schema.get("minItems", 0))):
            item = first[index] if index < len(first) else schema.get("items", True)
            yield self._field(item, f"[{index}]", within)


def _written_down(schema: Mapping[str, Any]) -> list[JSON]:
    """Values that the schema itself names."""
    return [*(schema[name] for name in ("const", "default") if name in schema), *schema.get("enum", ())]


def _is_computed(schema: JSON) -> bool:
    return isinstance(schema, Mapping) and schema.get("readOnly") is True


def _text(schema: Mapping[str, Any], least: int, word: str) -> str:
    shortest = max(least, schema.get("minLength", 0))
    longest = schema.get("maxLength", math.inf)
    texts = [FORMATS[schema["format"]]] if schema.get("format") in FORMATS else [word, *_CANDIDATES]
    for text in texts:
        fitted = text if "format" in schema or "pattern" in schema else _fitted(text, shortest, longest)
        if shortest <= len(fitted) <= longest and re.search(schema.get("pattern", ""), fitted):
            return fitted
    raise NoMock("no text is known that fits its pattern and length")


def _fitted(text: str, shortest: int, longest: float) -> str:
    if 0 < len(text) < shortest:
        return (text * (shortest // len(text) + 1))[:shortest]
    return text if len(text) <= longest else text[: int(longest)]


def _number(schema: Mapping[str, Any], *, whole: bool) -> Fraction:
    """0 where that is allowed, else the allowed number that is closest to it."""
    step = Fraction(str(schema.get("multipleOf", 1))) if whole or "multipleOf" in schema else None
    low, high = _bound(schema, "minimum", "exclusiveMinimum", max), _bound(schema, "maximum", "exclusiveMaximum", min)
    if low is not None and (low[0] > 0 or (low[0] == 0 and low[1])):
        return _beyond(low, step, high, 1)
    if high is not None and (high[0] < 0 or (high[0] == 0 and high[1])):
        return _beyond(high, step, low, -1)
    return Fraction(0)


def _bound(schema: Mapping[str, Any], name: str, exclusive: str, pick: Any) -> tuple[Fraction, bool] | None:
    found = [(Fraction(str(schema[key])), key == exclusive) for key in (name, exclusive) if key in schema]
    return pick(found) if found else None


def _beyond(
    bound: tuple[Fraction, bool], step: Fraction | None, other: tuple[Fraction, bool] | None, sign: int
) -> Fraction:
    """The first allowed number from a bound away from 0."""
    edge, is_excluded = bound
    if step is None:
        if not is_excluded:
            return edge
        return (edge + other[0]) / 2 if other is not None else edge + sign
    steps = math.ceil(sign * edge / step)
    found = sign * steps * step
    return found + sign * step if is_excluded and found == edge else found
