"""A tool's arguments in the strict dialect of JSON schema, and arguments written so in the tool's own form.

Where no text can stand, a reference may stand as well. What the dialect cannot say (bounds, formats) is left to the
tool's own check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plans.values import JSON

PAIRS = "name_value_pairs"
"""An open object is written as {"name_value_pairs": [{"name": …, "value": …}, …]}."""

REFERENCE: dict[str, JSON] = {"type": "string", "pattern": r"^\$\{.+\}$"}
_ANY: dict[str, JSON] = {"$ref": "#/$defs/any"}
_SCALARS = frozenset({"number", "integer", "boolean"})


def strict_object(properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """A closed object with all of these."""
    required: JSON = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def nullable(schema: JSON) -> dict[str, JSON]:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def any_value() -> dict[str, JSON]:
    """The definition of a value of any kind."""
    kinds: list[JSON] = [{"type": name} for name in ("string", "number", "boolean", "null")]
    return {"any": {"anyOf": [*kinds, {"type": "array", "items": _ANY}, _open(_ANY)]}}


def pairs_in(value: JSON, key: str = "value") -> dict[str, JSON] | None:
    """The object that a list of names and values stands for; None if it is none, or a name stands twice."""
    pairs = value.get(PAIRS) if isinstance(value, Mapping) and len(value) == 1 else None
    if not isinstance(pairs, list | tuple):
        return None
    found: dict[str, JSON] = {}
    for pair in pairs:
        if not isinstance(pair, Mapping) or pair.keys() != {"name", key} or not isinstance(pair["name"], str):
            return None
        if pair["name"] in found:
            return None
        found[pair["name"]] = pair[key]
    return found


class StrictArguments:
    """The arguments of one tool. `schema` is what a model writes, with `definitions` beside it; `uses_any` says that
    among them a value of any kind is meant."""

    def __init__(self, tool: str, own: Mapping[str, Any]) -> None:
        self._prefix = f"{tool}__"
        self._own = own
        self.uses_any = False
        self.definitions: dict[str, JSON] = {}
        for name, each in own.get("$defs", {}).items():
            self.definitions[self._prefix + name] = self._strict(each)
        self.schema = self._object(own)

    def restored(self, args: JSON) -> JSON:
        """Arguments in the tool's own form: open objects are objects, and what is null because it had to be there is
        left out."""
        return self._restored(args, [self._own])

    def _strict(self, own: Any) -> dict[str, JSON]:
        if not isinstance(own, Mapping):
            return self._any()
        if "$ref" in own:
            name = str(own["$ref"]).removeprefix("#/$defs/")
            return {"$ref": f"#/$defs/{self._prefix}{name}"} if name in self._own.get("$defs", {}) else self._any()
        if isinstance(several := own.get("anyOf", own.get("oneOf")), list) and several:
            return {"anyOf": [self._strict(each) for each in several]}
        if isinstance(values := own.get("enum", [own["const"]] if "const" in own else None), list):
            return self._one_of(values)
        return self._of_type(own)

    def _of_type(self, own: Mapping[str, Any]) -> dict[str, JSON]:
        match own.get("type"):
            case "string" | "null" as kind:
                return {"type": kind}
            case str(kind) if kind in _SCALARS:
                return {"anyOf": [{"type": kind}, REFERENCE]}
            case "array":
                return {"anyOf": [{"type": "array", "items": self._strict(own.get("items"))}, REFERENCE]}
            case "object":
                return {"anyOf": [self._object(own), REFERENCE]}
            case list(kinds) if kinds:
                return {"anyOf": [self._strict({**own, "type": kind}) for kind in kinds]}
        return self._any()

    def _one_of(self, values: list[Any]) -> dict[str, JSON]:
        kinds: dict[str, tuple[type, ...]] = {
            "string": (str,), "boolean": (bool,), "number": (int, float), "null": (type(None),)
        }  # fmt: skip
        left, found = list(values), list[JSON]()
        for name, kind in kinds.items():
            if chosen := [value for value in left if isinstance(value, kind)]:
                found.append({"type": name, "enum": chosen})
                left = [value for value in left if not isinstance(value, kind)]
        return self._any() if left else {"anyOf": [*found, REFERENCE]}

    def _object(self, own: Mapping[str, Any]) -> dict[str, JSON]:
        properties = own.get("properties") or {}
        if not properties and own.get("additionalProperties") is False:
            return strict_object({})
        if not properties or own.get("additionalProperties"):
            more = own.get("additionalProperties")
            return _open(self._any() if properties or not isinstance(more, Mapping) else self._strict(more))
        required = own.get("required", ())
        strict = {name: self._strict(each) for name, each in properties.items()}
        return strict_object({name: each if name in required else nullable(each) for name, each in strict.items()})

    def _any(self) -> dict[str, JSON]:
        self.uses_any = True
        return dict(_ANY)

    def _restored(self, value: JSON, owns: list[Any]) -> JSON:
        """A value at a place that any of these schemas describes; [] where nothing is known."""
        owns = [each for own in owns for each in self._alternatives(own, 0)]
        if isinstance(value, list | tuple):
            items = [own["items"] for own in owns if isinstance(own.get("items"), Mapping)]
            return [self._restored(item, items) for item in value]
        if not isinstance(value, Mapping):
            return value
        if (pairs := pairs_in(value)) is not None:
            more = [own["additionalProperties"] for own in owns if isinstance(own.get("additionalProperties"), Mapping)]
            return {name: self._restored(item, [*_of(owns, name), *more]) for name, item in pairs.items()}
        kept = {name: item for name, item in value.items() if item is not None or not self._left_out(owns, name)}
        return {name: self._restored(item, _of(owns, name)) for name, item in kept.items()}

    def _left_out(self, owns: list[Any], name: str) -> bool:
        """Whether null can only mean that an argument is not given."""
        known = [own for own in owns if name in own.get("properties", {})]
        return bool(known) and all(
            name not in own.get("required", ()) and not self._takes_null(own["properties"][name]) for own in known
        )

    def _takes_null(self, own: Any) -> bool:
        return not isinstance(own, Mapping) or any(
            not each.keys() & {"type", "enum", "const"}
            or each.get("type") == "null"
            or None in each.get("enum", ())
            or ("const" in each and each["const"] is None)
            or ("type" in each and "null" in each["type"])
            for each in self._alternatives(own, 0)
        )

    def _alternatives(self, own: Any, depth: int) -> Iterator[Mapping[str, Any]]:
        if not isinstance(own, Mapping) or depth > 8:
            return
        if "$ref" in own:
            name = str(own["$ref"]).removeprefix("#/$defs/")
            yield from self._alternatives(self._own.get("$defs", {}).get(name), depth + 1)
        elif isinstance(several := own.get("anyOf", own.get("oneOf")), list):
            for each in several:
                yield from self._alternatives(each, depth + 1)
        else:
            yield own


def _of(owns: list[Any], name: str) -> list[Any]:
    return [own["properties"][name] for own in owns if name in own.get("properties", {})]


def _open(value: JSON) -> dict[str, JSON]:
    pair = strict_object({"name": {"type": "string"}, "value": value})
    return strict_object({PAIRS: {"type": "array", "items": pair}})
