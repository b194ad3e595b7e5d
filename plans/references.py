"""References to results and inputs: `${s1}`, `${s1.path}`, `${s1[0].id}`, `${inputs.orders}`.

What follows the name is JMESPath. A string that is nothing but one reference becomes the value, of whatever type;
inside a longer string it becomes text. `$${` is a literal `${`; every other dollar is a dollar. What a reference
resolves to is never scanned for references again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from plans.expressions import MAX_LENGTH, InvalidExpression, compiled, finds_null
from plans.texts import texts_with
from plans.values import JSON, Path
from plans.wording import kind_of

SHORT = 200
"""Longest text whose parts are remembered, in characters."""

MOST_DIGITS = 4
"""Digits in a field's name; a key with more is a number or an id by which something is kept."""
# Letters of other scripts say more in fewer characters: a whole sentence of Chinese has twenty.
_FIELD = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_.-]{0,39}|\w{1,12}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# The scan for an end stops at the next dollar and after MAX_LENGTH: a text full of `${` is read in linear time.
# No possessive repetition: Python before 3.11.5 gets it wrong together with groups.
_QUOTED_BRACE_OR_DOLLAR = re.compile(
    "[{}$]|" + "|".join(rf"{quote}(?:[^{quote}\\]|\\.)*(?:{quote}|\\?\Z)" for quote in "'\"`"), re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: the name it starts with and the JMESPath after it, as written."""

    name: str
    path: str

    def __str__(self) -> str:
        return "${" + self.name + self.path + "}"

    @property
    def expression(self) -> str:
        """The JMESPath expression that is evaluated on the named value."""
        return "@" + self.path


class UnresolvedReference(Exception):
    """A reference that finds nothing; the text says which and why."""


Part = str | Reference
Located = tuple[Path, bool, Reference]
"""Where a reference stands, whether it is the whole string, and itself."""
Lookup = Callable[[str], JSON]


def parse(text: str) -> tuple[Part, ...]:
    """Literal texts and references, in order. Never fails: what is no reference is literal."""
    if "${" not in text:
        return (text,) if text else ()
    return _remembered(text) if len(text) <= SHORT else _parsed(text)


def _parsed(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    literal: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0:
        literal.append(text[position:dollar])
        if text.startswith("$${", dollar):
            literal.append("${")
            position = dollar + 3
        elif found := _reference_at(text, dollar):
            if joined := "".join(literal):
                parts.append(joined)
            literal = []
            reference, position = found
            parts.append(reference)
        else:
            literal.append("$")
            position = dollar + 1
    if joined := "".join((*literal, text[position:])):
        parts.append(joined)
    return tuple(parts)


_remembered = lru_cache(maxsize=4_096)(_parsed)
"""Each check of a plan looks at the same short texts again."""


def escape(text: str) -> str:
    """The string that resolves to exactly this text. One that ends in a dollar must not be put right before a
    reference: `$${` is always a literal."""
    return text.replace("${", "$${")


def lines_of(text: str) -> list[str]:
    """The lines of a text. A line break inside a reference, which JMESPath allows, ends none."""
    lines = [""]
    for part in parse(text):
        first, *rest = [str(part)] if isinstance(part, Reference) else escape(part).split("\n")
        lines[-1] += first
        lines.extend(rest)
    return lines


def _reference_at(text: str, dollar: int) -> tuple[Reference, int] | None:
    if not text.startswith("${", dollar):
        return None
    name = _NAME.match(text, dollar + 2)
    if name is None:
        return None
    end = _closing_brace(text, name.end())
    if end is None:
        return None
    return Reference(name[0], text[name.end() : end]), end + 1


def _closing_brace(text: str, position: int) -> int | None:
    """Where the reference ends: JMESPath may hold braces of its own, and quoted ones, but no dollar of its own."""
    depth = 0
    for token in _QUOTED_BRACE_OR_DOLLAR.finditer(text, position, position + MAX_LENGTH):
        if token[0] == "$":
            return None
        if token[0] == "}" and depth == 0:
            return token.start()
        depth += {"{": 1, "}": -1}.get(token[0], 0)
    return None


def references_in(value: JSON) -> list[Reference]:
    """Every reference in a value, in order of appearance; keys are not looked at."""
    return [] if value is None else [reference for _, _, reference in located(value)]


def located(value: JSON, path: Path = ()) -> Iterator[Located]:
    """Every reference in a value with its place."""
    for place, text in texts_with("${", value, path):
        parts = parse(text)
        yield from ((place, len(parts) == 1, part) for part in parts if isinstance(part, Reference))


def resolve(value: JSON, lookup: Lookup) -> JSON:
    """The value with every reference replaced. `lookup` gives a name's value, or raises KeyError.

    Raises UnresolvedReference for a name that is not there or a path that finds nothing.
    """
    if isinstance(value, str):
        return _resolve_text(value, lookup)
    if isinstance(value, dict):
        return {key: resolve(item, lookup) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, lookup) for item in value]
    return value


def _resolve_text(text: str, lookup: Lookup) -> JSON:
    parts = parse(text)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return follow(parts[0], lookup)
    return "".join(part if isinstance(part, str) else as_text(follow(part, lookup)) for part in parts)


def follow(reference: Reference, lookup: Lookup) -> JSON:
    """What one reference stands for."""
    try:
        root = lookup(reference.name)
    except KeyError:
        raise UnresolvedReference(f"{reference} names {reference.name!r}, which has no result") from None
    if not reference.path:
        return root
    try:
        found = compiled(reference.expression).search(root)
    except InvalidExpression as error:
        raise UnresolvedReference(f"{reference}: {error}") from None
    if found is None and not finds_null(reference.expression, root):
        raise UnresolvedReference(f"{reference} finds nothing in {_shape(root)}")
    return found


def as_text(value: JSON) -> str:
    """A value inside a longer string: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_name(key: str) -> bool:
    """Whether a key is a field's name, as far as that can be told: a key may also be what a stranger wrote, and names
    are shown to models and in messages."""
    return bool(_FIELD.fullmatch(key)) and sum(map(str.isdigit, key)) <= MOST_DIGITS


def _shape(value: JSON) -> str:
    if isinstance(value, dict):
        if not all(isinstance(key, str) and is_name(key) for key in value):
            return f"an object with {len(value)} keys"
        keys = sorted(value)
        shown = ", ".join(keys[:8]) + (", …" if len(keys) > 8 else "")
        return f"an object with the keys {shown}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return kind_of(value)
