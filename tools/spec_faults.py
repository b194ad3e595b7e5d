"""What is wrong with a declared spec, in plain words: the same ones for code, settings files and foreign servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from plans.expressions import InvalidExpression, compiled
from plans.wording import nearest
from tools.named_rules import CHECKS
from tools.problems import kind_of
from tools.spec import ToolSpec

MAX_SHOWN = 80
"""Longest value that a sentence repeats, in characters."""

_BRANCHES = frozenset({"bool", "str", "int", "float", "constrained-str"})

Problem = Mapping[str, Any]


def sentence(problem: Problem) -> str:
    """The end of a sentence that begins with the tool, for one of pydantic's error details about its spec."""
    parts = tuple(problem["loc"])
    place, kind = _place(parts), problem["type"]
    if kind == "extra_forbidden":
        return f"has no setting {place!r}; {_meant(str(parts[-1]), _settings_at(parts))}"
    if kind == "unknown_check":
        return f"has {place} with a check that no rule has; there are {', '.join(CHECKS)}"
    if kind == "missing":
        return f"has {_place(parts[:-1])} without {parts[-1]!r}, which it needs"
    if parts == ("name",):
        return f"needs a name of 1 to 64 letters, digits, _ and -, not {problem['input']!r}; give name=..."
    said = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"has {place}={_shown(problem['input'])}: {said}"


def contradictions(spec: ToolSpec) -> Iterator[str]:
    """What is sound by itself and makes no sense together."""
    for setting in ("roles", "sensitive_args", "secret_args", "identity_args"):
        names = getattr(spec, setting) or ()
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"has {name!r} twice in {setting}"
        if any(not name.strip() for name in names):
            yield f"has an empty name in {setting}"
    if spec.identity_args == ():
        yield "has no names in identity_args, so that all its effects would be the same one; leave it out for all"
    if spec.identity_args and spec.effect == "read":
        yield "only reads, so there is no effect for identity_args to tell apart; leave it out"


def unreadable(expression: str, place: str) -> Iterator[str]:
    """That an expression in a spec cannot be read, if so; `place` says where it stands, such as "a never_empty"."""
    try:
        compiled(expression)
    except InvalidExpression as error:
        yield f"has {place} that cannot be read: {error}"


def without_description(name: str) -> str:
    """What to tell about a tool that says nothing about itself."""
    cure = "give it a docstring, or a summary in its document"
    return f"the tool {name!r} has no description: a planner knows it by its name alone; {cure}"


def _place(parts: Sequence[Any]) -> str:
    """`rules[0].value` for ("rules", 0, "at_most", "value"): which branch of a union it was is nobody's business."""
    text = ""
    for index, part in enumerate(parts):
        if isinstance(part, int):
            text += f"[{part}]"
        elif not index or not (part in _BRANCHES or (isinstance(parts[index - 1], int) and part in CHECKS)):
            text += f".{part}" if text else str(part)
    return text


def _settings_at(parts: Sequence[Any]) -> list[str]:
    """The settings that there are where an unknown one was given."""
    if len(parts) == 1:
        return list(ToolSpec.model_fields)
    models = list(_models(ToolSpec.model_fields[parts[0]].annotation))
    tagged = [model for model in models if _check_of(model) in parts[1:-1]]
    return [name for model in tagged or models for name in model.model_fields]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _check_of(model: type[BaseModel]) -> Any:
    check = model.model_fields.get("check")
    return check.default if check is not None else None


def _meant(name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else f"known: {', '.join(dict.fromkeys(known))}"


def _shown(given: Any) -> str:
    """A number, a word; of anything larger only what it is."""
    if isinstance(given, str | int | float | bool | None):
        text = repr(given)
        return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
    return kind_of(given) if isinstance(given, Mapping | list | tuple) else f"a {type(given).__name__}"
