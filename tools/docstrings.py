"""Docstrings read as people write them: what a tool does, and apart from it what each of its arguments is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_GOOGLE = re.compile(r"(?:args|arguments|parameters|params):", re.IGNORECASE)
_NUMPY = re.compile(r"(?:other )?parameters", re.IGNORECASE)
_UNDERLINE = re.compile(r"-{3,}")
_ENTRY = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_TYPE = re.compile(r":type\s+\w+\s*:")


def described(docstring: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """The docstring without what it says of its parameters, and that by their names; Google's, NumPy's and Sphinx's
    ways of writing them. A section that names none of `names` is prose, and stays."""
    lines = inspect.cleandoc(docstring).splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    while lines:
        taken, entries = _section(lines, names)
        if taken:
            found |= entries
            del lines[:taken]
        else:
            kept.append(lines.pop(0))
    return _joined(kept), found


def with_descriptions(schema: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """A copy of the schema of arguments, with these texts where it has no descriptions of its own."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not texts:
        return dict(schema)
    return {**schema, "properties": {name: _with(field, texts.get(name)) for name, field in properties.items()}}


def _with(field: Any, text: str | None) -> Any:
    if text is None or not isinstance(field, Mapping) or "description" in field:
        return field
    return {**field, "description": text}


def _section(lines: list[str], names: Collection[str]) -> tuple[int, dict[str, str]]:
    """How many of the first lines speak about parameters, and what they say; 0 where they do not."""
    first = lines[0].strip()
    if _SPHINX.fullmatch(first) or _SPHINX_TYPE.match(first):
        return _sphinx(lines, names)
    if _GOOGLE.fullmatch(first):
        return _listed(lines, 1, _google_entries, names)
    if _NUMPY.fullmatch(first) and len(lines) > 1 and _UNDERLINE.fullmatch(lines[1].strip()):
        return _listed(lines, 2, _numpy_entries, names)
    return 0, {}


def _sphinx(lines: list[str], names: Collection[str]) -> tuple[int, dict[str, str]]:
    """One field with the lines that go on with it."""
    end = 1
    while end < len(lines) and lines[end].startswith((" ", "\t")):
        end += 1
    entry = _SPHINX.fullmatch(lines[0].strip())
    if entry is None:
        return end, {}
    if entry[1] not in names:
        return 0, {}
    text = " ".join([entry[2], *(line.strip() for line in lines[1:end])]).strip()
    return end, {entry[1]: text} if text else {}


def _listed(lines: list[str], start: int, read: Any, names: Collection[str]) -> tuple[int, dict[str, str]]:
    """A section under a heading, to the first line that is not part of it."""
    end = start
    indent = _indent(lines[0])
    while end < len(lines) and not _ends(lines, end, indent, numpy=start == 2):
        end += 1
    found = {name: text for name, text in read(lines[start:end]) if name in names and text}
    return (end, found) if found else (0, {})


def _ends(lines: list[str], at: int, indent: int, *, numpy: bool) -> bool:
    """Whether a section is over: less indented in Google's, the next heading in NumPy's."""
    if not lines[at].strip():
        return False
    if numpy:
        return at + 1 < len(lines) and bool(_UNDERLINE.fullmatch(lines[at + 1].strip()))
    return _indent(lines[at]) <= indent


def _google_entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    entries = [line for line in lines if line.strip()]
    least = min((_indent(line) for line in entries), default=0)
    yield from _gathered((_indent(line) == least and _ENTRY.fullmatch(line.strip()), line.strip()) for line in entries)


def _numpy_entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    entries = [line for line in lines if line.strip()]
    least = min((_indent(line) for line in entries), default=0)
    for name, text in _gathered(
        (_indent(line) == least and _NUMPY_ENTRY.fullmatch(line.strip()), line.strip()) for line in entries
    ):
        yield from ((each.strip().lstrip("*"), text) for each in name.split(","))


def _gathered(lines: Iterator[tuple[Any, str]]) -> Iterator[tuple[str, str]]:
    """Entries with the lines below each of them."""
    name, texts = "", list[str]()
    for entry, line in lines:
        if entry:
            if name:
                yield name, " ".join(texts).strip()
            name, texts = entry[1], [entry[2]] if entry.re is _ENTRY else []
        else:
            texts.append(line)
    if name:
        yield name, " ".join(texts).strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
