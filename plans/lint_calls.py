"""Checks of what each step calls: the tool, whether it may be used, and the arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plans.faults import Fault
from plans.lint_scope import Placed, Scope, ToolView, fault
from plans.references import Reference, parse
from plans.values import JSON, MAX_DEPTH, Path, dotted, printable, too_deep, unclean
from plans.wording import listed, nearest


def action_faults(scope: Scope) -> Iterator[Fault]:
    """A tool that is not there or may not be used."""
    for at in scope.placed:
        if at[1].action == "tool" and not scope.doubts(at, "tool"):
            yield from _tool_faults(scope, at)


def _tool_faults(scope: Scope, at: Placed) -> Iterator[Fault]:
    name = at[1].tool or ""
    tool = scope.tools.get(name)
    if tool is None and (why := scope.why_absent(name)) is not None:
        yield fault("TOOL_UNAVAILABLE", f"the tool {printable(name)!r} is not there: {why}", at, ("tool",))
        return
    if tool is None:
        meant = nearest(name, scope.tools)
        fix = f"did you mean {meant!r}?" if meant else f"the tools are {listed(sorted(scope.tools))}"
        yield fault("UNKNOWN_TOOL", f"there is no tool {printable(name)!r}", at, ("tool",), fix=fix)
        return
    if tool.to_configure is not None:
        message = f"the tool {name!r} cannot be called yet"
        yield fault("TOOL_UNAVAILABLE", message, at, ("tool",), fix=tool.to_configure)
    elif not tool.enabled:
        fix = f"use another tool (or: surestep tools enable {name})"
        yield fault("TOOL_UNAVAILABLE", f"the tool {name!r} is switched off", at, ("tool",), fix=fix)
    if scope.permits is not None and not scope.permits(tool):
        yield fault("NOT_PERMITTED", f"this run may not use the tool {name!r}", at, ("tool",), fix="use another tool")


def depth_faults(scope: Scope) -> Iterator[Fault]:
    """Values nested so deeply that no other check could follow them; what was read from text never is."""
    for at in scope.placed:
        for field in ("args", "output_schema"):
            if (value := getattr(at[1], field)) and too_deep(value):
                yield fault("INVALID_ARGS", f"{field} is nested deeper than {MAX_DEPTH} levels", at, (field,))


def argument_faults(scope: Scope) -> Iterator[Fault]:
    """Arguments that cannot be stored, that the tool does not take, or that break one of its rules."""
    for at in scope.placed:
        unstorable = [] if scope.storable else list(unclean(at[1].args))
        for path, why in unstorable:
            yield fault("INVALID_ARGS", f"{dotted(path)} {why}", at, ("args", *path))
        tool = scope.tool(at[1])
        if tool is not None and not scope.doubts(at, "args"):
            told = [path for path, _ in unstorable]
            if scope.doubtful:
                told += [place[1:] for place in scope.doubtful.get(at[0], ()) if place[0] == "args"]
            yield from _refused(scope, tool, at, told)


def _refused(scope: Scope, tool: ToolView, at: Placed, told: Sequence[Path]) -> Iterator[Fault]:
    """What is wrong besides the places that were told already. A rule is judged by the arguments that are right."""
    args, open_ = as_written(scope, at), [*open_places(scope, at), *told]
    problems = tool.check_args(args, open_)
    if told:
        said = {dotted(place) for place in told}
        problems = [problem for problem in problems if problem[0] not in said]
    for place, sentence in problems:
        where = f"args{'' if not place or place.startswith('[') else '.'}{place}"
        message = f"{place} {sentence}" if place else sentence
        found = fault("INVALID_ARGS", f"{tool.name}: {message}", at)
        yield found.model_copy(update={"path": f"{found.path}.{where}"})
    if all(place for place, _ in problems):
        for argument, sentence in tool.breaches(args, open_ + _wrong(args, problems) if problems else open_):
            yield fault("RULE_VIOLATED", sentence, at, ("args", argument) if argument else ("args",))


def _wrong(args: Mapping[str, JSON], problems: Sequence[tuple[str, str]]) -> list[Path]:
    """The arguments with problems, and those that are missing."""
    found: list[Path] = [(name,) for name in args if any(_lies_in(place, name) for place, _ in problems)]
    return found + [(place,) for place, _ in problems]


def _lies_in(place: str, name: str) -> bool:
    argument = dotted((name,))
    return place == argument or place.startswith((f"{argument}.", f"{argument}["))


def open_places(scope: Scope, at: Placed) -> list[Path]:
    """Where a step's arguments hold references: what stands there is known only when it runs."""
    return [path for path, _, _ in scope.reads(at, "args")]


def as_written(scope: Scope, at: Placed) -> dict[str, JSON]:
    """The arguments with `$${` as the `${` it stands for, where no reference is in the text."""
    args = at[1].args
    for _, text in scope.texts(at, "args"):
        if "$${" in text:
            return {name: _literal(value) for name, value in args.items()}
    return args


def _literal(value: JSON) -> JSON:
    if isinstance(value, str):
        if "${" not in value:
            return value
        parts = parse(value)
        return value if any(isinstance(part, Reference) for part in parts) else "".join(map(str, parts))
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_literal(item) for item in value]
    return value
