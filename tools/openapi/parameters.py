"""A parameter of an operation: where it goes, how its value is written there, and what cannot stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from plans.failure import ToolFailure
from plans.values import JSON
from tools.http.urls import text

Place = Literal["path", "query", "header", "cookie"]
PLACES: tuple[Place, ...] = ("path", "query", "header", "cookie")
STYLES: Mapping[Place, tuple[str, ...]] = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles that are written, the usual one of each place first."""
_JOINED = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_SEGMENT = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`argument` is its name among the tool's arguments; `as_json` that its value is written as JSON. `default` is sent
    where a required one is left out and has one; `...` stands for none."""

    argument: str
    name: str
    place: Place
    required: bool
    style: str
    explode: bool
    as_json: bool = False
    default: JSON = ...


def in_path(parameter: Parameter, value: JSON) -> str:
    """The value as one segment of a path, whatever it holds. ToolFailure INVALID_ARGS where a server could take it for
    another path: nothing at all, or `.` and `..` between slashes, which some undo their escapes for."""
    written = _simple(parameter, value, _escaped)
    plain = written if isinstance(value, Mapping | list) else text(value)
    if not written:
        raise ToolFailure("INVALID_ARGS", f"{parameter.argument} is empty, which would be another path")
    if any(part in (".", "..") for part in _SEGMENT.split(plain)):
        raise ToolFailure("INVALID_ARGS", f"{parameter.argument} holds . or .. as a part, which would be another path")
    return written


def in_query(parameter: Parameter, value: JSON) -> Iterator[str]:
    """The parts of a query, `name=value` each."""
    name = _escaped(parameter.name)
    if parameter.as_json:
        yield f"{name}={_escaped(json.dumps(value, ensure_ascii=False))}"
    elif isinstance(value, Mapping):
        yield from _object_in_query(parameter, name, value)
    elif isinstance(value, list):
        items = [_escaped(_scalar(parameter, item)) for item in value]
        if parameter.explode:
            yield from (f"{name}={item}" for item in items)
        elif items:
            yield f"{name}={_JOINED[parameter.style].join(items)}"
    else:
        yield f"{name}={_escaped(_scalar(parameter, value))}"


def in_header(parameter: Parameter, value: JSON) -> str:
    """The value as a header has it. ToolFailure INVALID_ARGS for a line break or a letter that no header can hold."""
    written = _simple(parameter, value, lambda part: part)
    if not written.isascii() or not written.isprintable():
        raise ToolFailure("INVALID_ARGS", f"{parameter.argument} holds what a header cannot hold")
    return written


def in_cookie(parameter: Parameter, value: JSON) -> str:
    """One cookie."""
    return f"{_escaped(parameter.name)}={_simple(parameter, value, _escaped)}"


def form(value: Mapping[str, JSON]) -> str:
    """A body in the form of a query: lists give their name once per element, objects are JSON."""
    parts: list[str] = []
    for name, item in value.items():
        for each in item if isinstance(item, list) else [item]:
            written = "" if each is None else json.dumps(each) if isinstance(each, Mapping | list) else text(each)
            parts.append(f"{_escaped(name)}={_escaped(written)}")
    return "&".join(parts)


def _object_in_query(parameter: Parameter, name: str, value: Mapping[str, JSON]) -> Iterator[str]:
    pairs = [(_escaped(key), _escaped(_scalar(parameter, item))) for key, item in value.items()]
    if parameter.style == "deepObject":
        yield from (f"{name}%5B{key}%5D={item}" for key, item in pairs)
    elif parameter.explode:
        yield from (f"{key}={item}" for key, item in pairs)
    elif pairs:
        yield f"{name}={_JOINED[parameter.style].join(part for pair in pairs for part in pair)}"


def _simple(parameter: Parameter, value: JSON, written: Callable[[str], str]) -> str:
    """Parts joined by commas; of an object key and value, with = between them where it is exploded."""
    if parameter.as_json:
        return written(json.dumps(value, ensure_ascii=True))
    if isinstance(value, Mapping):
        between = "=" if parameter.explode else ","
        pairs = ((written(key), written(_scalar(parameter, item))) for key, item in value.items())
        return ",".join(f"{key}{between}{item}" for key, item in pairs)
    if isinstance(value, list):
        return ",".join(written(_scalar(parameter, item)) for item in value)
    return written(_scalar(parameter, value))


def _scalar(parameter: Parameter, value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping | list):
        raise ToolFailure("INVALID_ARGS", f"{parameter.argument} is nested deeper than a {parameter.place} can hold")
    return text(value)


def _escaped(value: Any) -> str:
    return quote(str(value), safe="")
