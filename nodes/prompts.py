"""Prompts: Markdown files with `$holes`, rendered strictly, known by the hash of their text.

A file's first part is the rules (the system message). `<!-- name -->` on a line of its own starts a further section;
the sections a call asks for become the task (the user message). What strangers wrote, tool results and goals
included, enters a prompt only through `quoted`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from plans.values import JSON

_SECTION = re.compile(r"^<!-- ([a-z_]+) -->\n", re.MULTILINE)
_RULES = "rules"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt ready to be sent: the rules, the task, and the hash of the file they were made from."""

    rules: str
    task: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file: its sections by name, `rules` first."""

    name: str
    sections: Mapping[str, Template]
    sha256: str

    def holes(self, sections: Sequence[str]) -> frozenset[str]:
        """The holes that the rules and these sections have."""
        return frozenset(hole for name in (_RULES, *sections) for hole in self.sections[name].get_identifiers())

    def render(self, sections: Sequence[str], holes: Mapping[str, str]) -> Rendered:
        """The prompt with its holes filled; ValueError if a hole is left over or a value has none."""
        wanted = self.holes(sections)
        if wrong := wanted.symmetric_difference(holes):
            raise ValueError(
                f"prompt {self.name!r} has the holes {sorted(wanted)}; it was given {sorted(holes)}: {sorted(wrong)}"
            )
        rules, *task = (self.sections[name].substitute(holes).strip() for name in (_RULES, *sections))
        return Rendered(rules, "\n\n".join(task), self.sha256)


@cache
def load(name: str) -> Prompt:
    """The prompt `prompts/<name>.md` of this package."""
    return read(name, files("nodes").joinpath("prompts", f"{name}.md").read_text("utf-8"))


def read(name: str, text: str) -> Prompt:
    """A prompt from its text; ValueError if a hole is misspelled or a section stands twice."""
    rules, *rest = _SECTION.split(text)
    names = [_RULES, *rest[::2]]
    sections = dict(zip(names, map(Template, [rules, *rest[1::2]]), strict=True))
    if len(sections) < len(names):
        raise ValueError(f"prompt {name!r} has a section twice: {names}")
    for section, template in sections.items():
        if not template.is_valid():
            raise ValueError(f"prompt {name!r}, section {section!r}: a lone dollar is written $$")
    return Prompt(name, sections, hashlib.sha256(text.encode()).hexdigest())


def quoted(value: JSON) -> str:
    """A value as compact JSON that cannot end the element it stands in, nor start another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def bounded(values: Mapping[str, JSON], budget: int) -> dict[str, JSON]:
    """The values, those that are too long replaced by the beginning of their JSON text and a note of its length.

    `budget` is in characters for all together; what small values leave over, large ones share.
    """
    texts = {name: json.dumps(value, ensure_ascii=False, separators=(",", ":")) for name, value in values.items()}
    share = _share([len(text) for text in texts.values()], budget)
    return {
        name: value if len(texts[name]) <= share else _beginning(texts[name], share) for name, value in values.items()
    }


def _share(lengths: Sequence[int], budget: int) -> int:
    """The length that each value may have, so that all together keep within the budget."""
    left = budget
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return budget


def _beginning(text: str, length: int) -> dict[str, JSON]:
    return {"beginning": text[:length], "characters": len(text), "cut": True}
