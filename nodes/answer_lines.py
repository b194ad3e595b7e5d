"""A text with references, line by line: what it comes to, and which of its lines find nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plans.references import Reference, UnresolvedReference, as_text, follow, lines_of, parse, references_in, resolve
from plans.values import JSON


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was written, and what it comes to; else why it comes to nothing, as when a step was skipped."""

    written: str
    text: str | None
    why: str = ""


def filled(text: str, named: Mapping[str, JSON]) -> Iterator[Line]:
    """Each line of a text with what its references stand for."""
    for line in lines_of(text):
        try:
            yield Line(line, as_text(resolve(line, named.__getitem__)))
        except UnresolvedReference as error:
            yield Line(line, None, str(error))


def value_of(template: JSON, named: Mapping[str, JSON]) -> JSON:
    """What a template comes to: the value of one that is a single reference, the lines of a text that find what they
    name, and of an object the parts that are there. Raises UnresolvedReference where nothing is left."""
    if isinstance(template, dict):
        found = {name: part for name, text in template.items() for part in _part(str(text), named)}
        if not found:
            raise UnresolvedReference("none of the last steps has a result")
        return found
    text = as_text(template)
    parts = parse(text)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return follow(parts[0], named.__getitem__)
    lines = [line.text for line in filled(text, named) if line.text is not None]
    if not lines:
        raise UnresolvedReference(f"no line of the answer finds what it names: {_named(text)}")
    return "\n".join(lines)


def _part(text: str, named: Mapping[str, JSON]) -> Iterator[JSON]:
    try:
        yield resolve(text, named.__getitem__)
    except UnresolvedReference:
        return


def _named(text: str) -> str:
    return ", ".join(dict.fromkeys(map(str, references_in(text))))
