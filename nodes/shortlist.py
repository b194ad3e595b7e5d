"""Which tools may stand in for a failed step: a few with their outline, the others by one line each.

The rule, the same for the same plan and tools:

- A step that changes nothing is replaced by a step that changes nothing. In the place of an effect its own tool, the
  alternatives that its tool declares, and reads may stand.
- First comes the step's own tool (its arguments may be what was wrong), then its declared alternatives, tools that
  declare it as theirs, tools whose declared result has every field that is read of the failed step, tools of its
  toolkit, the others. Among equals those whose names share words with it come first, then the alphabet.
- As many as fit are shown with their outline, at most MOST_SHOWN, and the first always. Of the others a line each,
  then names; what does not fit is counted. Who names one that has only a line is asked again, with its outline.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from nodes.model_settings import estimated
from nodes.prompts import quoted
from nodes.signatures import signature
from plans.plan import StepDraft
from plans.values import JSON
from tools.tool import Tool

MOST_SHOWN = 4
SHOWN_TOKENS = 500
"""What the outlines may come to, together; about four of usual size."""
LINES_TOKENS = 160
"""What the lines and names of the others may come to."""
MAX_SENTENCE = 160
MAX_LINE = 70
MAX_ARGUMENTS = 1_200
MAX_RESULT = 500
"""Characters of a description, of a line's words, and of the types in a outline."""


@dataclass(frozen=True)
class Shortlist:
    """Tools in the order of the rule. `shown` have their outline in the prompt, `named` do not."""

    shown: tuple[Tool, ...]
    named: tuple[Tool, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """All that may be used."""
        return frozenset(tool.name for tool in (*self.shown, *self.named))

    def outlines(self) -> list[JSON]:
        """The tools that are shown, as a prompt has them."""
        return [outline(tool) for tool in self.shown]

    @cached_property
    def lines(self) -> list[JSON]:
        """The others, as a prompt has them."""
        told: list[JSON] = []
        left = LINES_TOKENS
        for place, tool in enumerate(self.named):
            line = next((line for line in (_line(tool), tool.name) if estimated(line) <= left), None)
            if line is None:
                return [*told, f"and {len(self.named) - place} more, which are not listed"]
            left -= estimated(line)
            told.append(line)
        return told

    def closer(self, name: str | None) -> Shortlist | None:
        """The list that shows the outline of a tool which had only its name; None if it was shown, or is none."""
        found = tuple(tool for tool in self.named if tool.name == name)
        return Shortlist(found) if found else None


def shortlist(failed: StepDraft, own: Tool | None, fields: Collection[str], catalog: Iterable[Tool]) -> Shortlist:
    """Who may stand in for a step. `own` is its tool as it is registered, whether or not it is in the catalog; `fields`
    are those that others read of its result."""
    alternatives = _alternatives(own)
    may = [tool for tool in catalog if _may_stand_in(tool, own, alternatives)]
    ranked = sorted(may, key=lambda tool: (*_rank(tool, failed, own, alternatives, fields), tool.name))
    shown = list[Tool]()
    left = SHOWN_TOKENS
    for tool in ranked[:MOST_SHOWN]:
        left -= estimated(quoted(outline(tool)))
        if shown and left < 0:
            break
        shown.append(tool)
    return Shortlist(tuple(shown), tuple(ranked[len(shown) :]))


def outline(tool: Tool) -> dict[str, JSON]:
    """A tool in few words: what it does, what it takes, and what it gives."""
    told: dict[str, JSON] = {
        "name": tool.name,
        "effect": tool.effect,
        "does": _sentence(tool, MAX_SENTENCE),
        "args": signature(tool.input_schema, MAX_ARGUMENTS, described=True),
    }
    if tool.output_schema:
        told["result"] = signature(tool.output_schema, MAX_RESULT)
    return told


def _may_stand_in(tool: Tool, own: Tool | None, alternatives: Collection[str]) -> bool:
    if tool.effect == "read":
        return True
    return own is not None and own.effect != "read" and (tool.name == own.name or tool.name in alternatives)


def _rank(
    tool: Tool, failed: StepDraft, own: Tool | None, alternatives: list[str], fields: Collection[str]
) -> tuple[int, int, int]:
    if tool.name == failed.tool:
        place = 0
    elif tool.name in alternatives:
        return 1, alternatives.index(tool.name), 0
    elif failed.tool in _alternatives(tool):
        place = 2
    elif fields and set(fields) <= _fields(tool):
        place = 3
    else:
        place = 4 if own is not None and tool.toolkit == own.toolkit else 5
    return place, 0, -len(_words(tool.name) & _words(f"{failed.tool} {failed.title}"))


def _alternatives(tool: Tool | None) -> list[str]:
    return [each.tool for each in tool.spec.fallbacks if each.tool is not None] if tool is not None else []


def _fields(tool: Tool) -> set[str]:
    schema = tool.output_schema or {}
    found = schema.get("$defs", {}).get(str(schema.get("$ref", "")).removeprefix("#/$defs/"), schema)
    return set(found.get("properties") or ())


def _words(name: str) -> set[str]:
    return {word for word in re.split(r"[\W_]+", name.lower()) if len(word) > 2}


def _line(tool: Tool) -> str:
    says = _sentence(tool, MAX_LINE)
    return f"{tool.name}: {says}" if _words(says) - _words(tool.name) else tool.name


def _sentence(tool: Tool, longest: int) -> str:
    """The first sentence of a description, cut."""
    words = " ".join(tool.spec.description.split())
    first = re.split(r"(?<=[.!?])\s", words, maxsplit=1)[0]
    return first if len(first) <= longest else first[: longest - 1] + "…"
