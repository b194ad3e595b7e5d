"""A tool as it was changed while running: switched off, with other limits, or answered by its candidate.

A setting is named as people write it, with a dot for one of a group: `timeout_s`, `retry.max_attempts`. What is stored
was checked against the tool as it was declared then; where a newer declaration leaves no sense in it, it is ignored,
and told, but never a reason for a call to fail.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, get_args
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError

from plans.values import JSON, dotted, unclean
from plans.wording import nearest
from tools.checks import faults_alone
from tools.ports import SettingsStore
from tools.spec import BreakerPolicy, RateLimit, Repeats, Retry, ToolSpec
from tools.tool import Tool

GROUPS: Mapping[str, type[BaseModel]] = {
    "retry": Retry, "breaker": BreakerPolicy, "rate_limit": RateLimit, "repeats": Repeats,
}  # fmt: skip
CHANGEABLE = ("enabled", "timeout_s", *GROUPS, "concurrency", "limit_scope", "cache_ttl_s", "shadow_share")
"""What may be changed without a new declaration: nothing that says what a tool does, or who may use it."""
ANSWERED_BY = "answered_by"
"""Names the candidate that was promoted. Stored beside the settings, and set by a promotion only."""

Flat = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class ToolNow:
    """A tool with what was changed about it. `answered_by` names who answers its calls (None: itself); `ignored` says,
    by setting, what is stored and makes no sense any more."""

    tool: Tool
    answered_by: str | None = None
    ignored: Mapping[str, str] | None = None


_known: WeakKeyDictionary[Tool, tuple[Mapping[str, JSON], ToolNow]] = WeakKeyDictionary()


async def tool_now(tool: Tool, settings: SettingsStore) -> ToolNow:
    """The tool with its stored changes. Never an error: what makes no sense is left as declared, and said."""
    stored = await settings.get(tool.name)
    if not stored:
        return ToolNow(tool)
    known = _known.get(tool)
    if known is None or known[0] != stored:
        known = _known[tool] = (deepcopy(dict(stored)), with_changes(tool, stored))
    return known[1]


def with_changes(tool: Tool, stored: Mapping[str, JSON]) -> ToolNow:
    """The tool with those of the changes that make sense, alone or together with the others."""
    flat = flattened(stored)
    answered_by = flat.pop(ANSWERED_BY, None)
    ignored: dict[str, str] = {}
    if faults_in(tool, flat):
        flat, ignored = _sound(tool, flat)
    changed = _changed(tool, flat)
    if not isinstance(answered_by, str):
        return ToolNow(changed, None, ignored or None)
    # Another version: what is kept of the one's results is not taken for what the other would say.
    suffix = f", answered by {answered_by}"
    spec = changed.spec.model_copy(update={"version": tool.spec.version.removesuffix(suffix) + suffix})
    return ToolNow(replace(changed, spec=spec), answered_by, ignored or None)


def _sound(tool: Tool, flat: Flat) -> tuple[Flat, dict[str, str]]:
    """As many of the changes as make sense, one after the other, and what is wrong with each of the others."""
    sound: Flat = {}
    left = dict(flat)
    while True:
        found = next((name for name in left if not faults_in(tool, {**sound, name: left[name]})), None)
        if found is None:
            break
        sound[found] = left.pop(found)
    return sound, {name: faults_in(tool, {**sound, name: value})[0] for name, value in left.items()}


def faults_in(tool: Tool, flat: Flat) -> list[str]:
    """Everything that is wrong with these changes of this tool, in plain words."""
    unstorable = {str(path[0]): f"{dotted(path)} {why}" for path, why in unclean(flat) if path}
    faults = [fault for name in flat if (fault := unstorable.get(name) or fault_of_name(name))]
    known = {name: v for name, v in flat.items() if name not in unstorable and fault_of_name(name) is None}
    if not isinstance(known.pop("enabled", True), bool):
        faults.append(f"enabled={flat['enabled']!r}: should be true or false")
    try:
        changed = _changed(tool, known)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        wrong = {problem["loc"][0] for problem in problems}
        rest = {name: value for name, value in known.items() if name.partition(".")[0] not in wrong}
        return faults + [_sentence(problem) for problem in problems] + faults_in(tool, rest)
    before = faults_alone(tool)
    return faults + [f"{tool.name} {fault}" for fault in faults_alone(changed) if fault not in before]


def fault_of_name(name: str) -> str | None:
    """Why there is no such setting, with the one that was probably meant; None where there is."""
    if name in setting_names():
        return None
    last = {known.rpartition(".")[2]: known for known in setting_names()}
    close = last.get(name) or nearest(name, setting_names()) or last.get(nearest(name, last) or "")
    hint = f"did you mean {close}?" if close else f"there are {', '.join(setting_names())}"
    return f"there is no setting {name!r}; {hint}"


def setting_names() -> tuple[str, ...]:
    """The settings as people name them. Of a group that a tool can be without its own name is one too, so that
    `rate_limit=null` takes it away."""
    names: list[str] = []
    for name in CHANGEABLE:
        if name in GROUPS:
            names += [f"{name}.{part}" for part in GROUPS[name].model_fields]
        if name not in GROUPS or type(None) in get_args(ToolSpec.model_fields[name].annotation):
            names.append(name)
    return tuple(names)


def flattened(stored: Mapping[str, JSON]) -> Flat:
    """Stored changes by the names that people use."""
    flat: Flat = {}
    for name, value in stored.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{part}": given for part, given in value.items()}
        else:
            flat[name] = value
    return flat


def nested(flat: Mapping[str, JSON]) -> dict[str, JSON]:
    """Changes as they are stored: the settings of a group under its name."""
    stored: dict[str, JSON] = {}
    for name, value in flat.items():
        group, _, part = name.partition(".")
        if not part:
            stored[name] = value
        elif isinstance(inner := stored.setdefault(group, {}), dict):
            inner[part] = value
    return stored


def merged(before: Mapping[str, JSON], changes: Mapping[str, JSON], unset: Collection[str] = ()) -> Flat:
    """The changes after these were made and those unset; a group and one setting of it displace each other."""
    new = {*changes, *unset}
    kept = {name: value for name, value in before.items() if not any(_displaces(each, name) for each in new)}
    return {**kept, **changes}


def _displaces(new: str, old: str) -> bool:
    return new == old or old.startswith(f"{new}.") or new.startswith(f"{old}.")


def _changed(tool: Tool, flat: Mapping[str, JSON]) -> Tool:
    """The tool with these changes. ValidationError for what makes no sense."""
    changes = nested(flat)
    enabled = changes.pop("enabled", tool.enabled)
    declared = tool.spec.model_dump(include=set(changes))
    whole = {
        name: {**declared[name], **value} if isinstance(value, dict) and isinstance(declared[name], dict) else value
        for name, value in changes.items()
    }
    return replace(tool, spec=tool.spec.changed(whole), enabled=bool(enabled))


def _sentence(problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{place} is needed too"
    said = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{place}={problem['input']!r}: {said}"
