"""One tool as a server lists it: what of it can be used, and what names it so that a change is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plans.values import canonical, sha256_of, too_deep, unclean
from tools.json_arguments import SchemaArguments
from tools.json_result import SchemaResult

MAX_DESCRIPTION = 2_000
"""Longest description that is kept, in characters."""
MAX_SCHEMA = 64_000
"""Longest JSON text of a schema that is used; those of real tools stay under 20,000."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")


class Faulty(Exception):
    """What is wrong with a listed tool, as a clause for people."""


@dataclass(frozen=True)
class Definition:
    """A tool as its server declares it. `hints` are the annotations about its effect that are said outright."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    hints: Mapping[str, bool]

    def digest(self, *, described: bool = True) -> str:
        """Names what a planner and our policy rest on; without the description where ours stands in its place."""
        said = self.description if described else ""
        return sha256_of([self.name, said, self.input_schema, self.output_schema, dict(self.hints)])[:16]


def read(listed: object) -> Definition:
    """The definition in an element of a server's list. Raises Faulty, with `name_of` to say of which."""
    if not isinstance(listed, Mapping):
        raise Faulty("it is no object")
    if not isinstance(listed.get("name"), str) or not listed["name"]:
        raise Faulty("it has no name")
    output = listed.get("outputSchema")
    annotations = listed.get("annotations")
    return Definition(
        name=listed["name"],
        description=_cleaned(listed.get("description")),
        input_schema=_schema(listed.get("inputSchema"), "inputSchema"),
        output_schema=None if output is None else _schema(output, "outputSchema"),
        hints=_hints(annotations if isinstance(annotations, Mapping) else {}),
    )


def name_of(listed: object, position: int) -> str:
    """How to name a listed tool, whatever it is."""
    name = listed.get("name") if isinstance(listed, Mapping) else None
    return _cleaned(name)[:80] if isinstance(name, str) and name else f"tool {position + 1} of its list"


def _hints(annotations: Mapping[str, Any]) -> dict[str, bool]:
    return {hint: annotations[hint] for hint in _HINTS if isinstance(annotations.get(hint), bool)}


def _cleaned(text: object) -> str:
    """A foreign text without what steers a terminal or hides from a reader, cut."""
    if not isinstance(text, str):
        return ""
    lines = ("".join(c for c in line if c.isprintable()) for line in text.splitlines())
    whole = "\n".join(lines).strip()
    return whole if len(whole) <= MAX_DESCRIPTION else whole[: MAX_DESCRIPTION - 1] + "…"


def _schema(schema: object, field: str) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise Faulty(f"its {field} is no object")
    if too_deep(schema):
        raise Faulty(f"its {field} is nested too deeply")
    if problem := next(unclean(schema), None):
        raise Faulty(f"its {field} cannot be stored: it {problem[1]}")
    if len(canonical(schema)) > MAX_SCHEMA:
        raise Faulty(f"its {field} has more than {MAX_SCHEMA:,} characters")
    if fault := _fault(schema, field):
        raise Faulty(f"its {field} cannot be used: {_cleaned(fault)[:200]}")
    return schema


def _fault(schema: dict[str, Any], field: str) -> str | None:
    """What is wrong with a schema, which here is a stranger's."""
    return SchemaResult(schema).fault() if field == "outputSchema" else SchemaArguments(schema).fault()
