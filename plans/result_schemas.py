"""Can this path exist in that JSON schema? Answers "no" only where the schema rules it out.

An object schema that names properties is taken to name them all, unless it allows more: typed functions and models
give exactly what they declare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plans.expression_paths import paths_needed
from plans.expressions import Tree
from plans.values import JSON

Schema = JSON
ANYTHING: Schema = True
_CHAINS = frozenset({"subexpression", "index_expression", "pipe"})
_MAX_JUMPS = 32


@dataclass(frozen=True, slots=True)
class Missing(Exception):
    """The part of a path that cannot exist, and what could have stood in its place."""

    name: str
    known: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """The schema of a result, with the document that its `$ref`s point into."""

    root: Schema
    here: Schema

    def at(self, tree: Tree) -> ResultSchema:
        """The schema of what an expression finds; ANYTHING where that is not known. Raises Missing."""
        return self._with(self._walk(tree, self.here))

    def element(self) -> ResultSchema:
        """The schema of an element, if this is a list. Raises Missing where it cannot be one."""
        return self._with(self._elements(self.here, "a list"))

    def longest(self) -> int | None:
        """The most elements that this list may have; None where its schema names none."""
        most = [form.get("maxItems") if isinstance(form, Mapping) else None for form in self._forms(self.here)]
        return max((each for each in most if isinstance(each, int)), default=None) if None not in most else None

    def shortest(self) -> int:
        """The fewest elements that this list has, by its schema."""
        least = [form.get("minItems", 0) if isinstance(form, Mapping) else 0 for form in self._forms(self.here)]
        return min((each for each in least if isinstance(each, int)), default=0)

    def _with(self, here: Schema) -> ResultSchema:
        return ResultSchema(self.root, here)

    def _walk(self, node: Tree, schema: Schema) -> Schema:
        children = node.get("children", [])
        match node["type"]:
            case "current" | "identity":
                return schema
            case "field":
                return self._field(node["value"], schema)
            case "index":
                return self._elements(schema, f"[{node['value']}]")
            case kind if kind in _CHAINS:
                for child in children:
                    schema = self._walk(child, schema)
                return schema
            case "projection" | "filter_projection":
                return self._projected(children, schema)
            case "flatten" | "value_projection":
                self._walk(children[0], schema)
        return ANYTHING

    def _projected(self, children: list[Tree], schema: Schema) -> Schema:
        of, each, *conditions = children
        elements = self._elements(self._walk(of, schema), "[*]")
        for path in (path for condition in conditions for path in paths_needed(condition, tested=True)):
            self._walk(path, elements)
        return {"type": "array", "items": self._walk(each, elements)}

    def _field(self, name: str, schema: Schema) -> Schema:
        known: list[str] = []
        found = [self._property(form, name, known) for form in self._forms(schema)]
        return _any_of([form for form in found if form is not None], Missing(name, tuple(dict.fromkeys(known))))

    def _property(self, form: Schema, name: str, known: list[str]) -> Schema | None:
        if not isinstance(form, Mapping):
            return ANYTHING if form is True else None
        if form.get("type", "object") != "object":
            return None
        properties = form.get("properties")
        if not isinstance(properties, Mapping):
            return form.get("additionalProperties", ANYTHING)
        if name in properties:
            return properties[name]
        known.extend(properties)
        more = form.get("additionalProperties", False if properties else ANYTHING)
        if "patternProperties" in form or more is True:
            return ANYTHING
        return more if isinstance(more, Mapping) else None

    def _elements(self, schema: Schema, place: str) -> Schema:
        found = [self._items(form) for form in self._forms(schema)]
        return _any_of([form for form in found if form is not None], Missing(place))

    @staticmethod
    def _items(form: Schema) -> Schema | None:
        if not isinstance(form, Mapping):
            return ANYTHING if form is True else None
        if form.get("type", "array") != "array" or "properties" in form:
            return None
        return ANYTHING if "prefixItems" in form else form.get("items", ANYTHING)

    def _forms(self, schema: Schema, jumps: int = 0) -> Iterator[Schema]:
        """The forms that a value may have: references followed, choices and lists of types taken apart."""
        if not isinstance(schema, Mapping) or jumps > _MAX_JUMPS:
            yield schema if isinstance(schema, bool) and jumps <= _MAX_JUMPS else ANYTHING
        elif "allOf" in schema or "if" in schema or "not" in schema:
            yield ANYTHING
        elif "$ref" in schema:
            yield from self._forms(self._pointed(schema["$ref"]), jumps + 1)
        elif branches := schema.get("anyOf") or schema.get("oneOf"):
            for branch in branches if isinstance(branches, list) else [ANYTHING]:
                yield from self._forms(branch, jumps + 1)
        elif isinstance(kinds := schema.get("type"), list):
            yield from ({**schema, "type": kind} for kind in kinds)
        else:
            yield schema

    def _pointed(self, ref: Any) -> Schema:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return ANYTHING
        here = self.root
        for part in ref[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(here, Mapping) or name not in here:
                return ANYTHING
            here = here[name]
        return here


def _any_of(found: list[Schema], missing: Missing) -> Schema:
    found = [form for form in found if form is not False]
    if not found:
        raise missing
    return found[0] if len(found) == 1 else {"anyOf": found}
