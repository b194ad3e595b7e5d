"""What pydantic finds wrong with a draft, as faults in plain words with places and nearest names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.faults import Fault
from plans.foreign_fields import field_meant
from plans.plan import PlanDraft, StepDraft
from plans.values import JSON, Path, dotted, printable, unclean
from plans.wording import kind_of, listed, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "an object",
    "tuple_type": "a list",
    "model_type": "an object",
    "float_type": "a number",
}
_NEED = {
    "args": 'write one object: {"name of the argument": value, …}',
    "depends_on": 'write a list of step ids: ["s1"]',
    "steps": "write a list of steps",
}
_CALLED = "write the tool's name in 'tool', and 'tool' as the action"
_NO_LETTER_OF_IDS = re.compile(r"[^A-Za-z0-9_-]+")
_ID_RULE = "a step id begins with a letter or _, then letters, digits, _ and -, 64 characters at most"


def schema_faults(error: ValidationError, written: JSON) -> Iterator[Fault]:
    """Each problem of a value that is no draft, at its place in `written`."""
    for problem in error.errors(include_url=False):
        path = tuple(problem["loc"])
        message, fix = _told(problem, path, _holder(written, path))
        where = dotted(path)
        yield Fault(
            code="SCHEMA_INVALID",
            step=step_id_at(written, path),
            path=where,
            message=f"{where or 'the plan'} {message}",
            fix=fix,
        )


def incomplete(written: JSON, position: int, problem: str) -> Fault:
    """A step that has not what its action needs, or has too much."""
    path: Path = ("steps", position)
    message = f"{dotted(path)} is not complete: {problem}"
    return Fault(code="SCHEMA_INVALID", step=step_id_at(written, path), path=dotted(path), message=message)


def unstorable_faults(written: JSON) -> Iterator[Fault]:
    """Each value that no database can hold; in arguments they are INVALID_ARGS."""
    for path, why in unclean(written):
        in_args = len(path) > 2 and path[0] == "steps" and path[2] == "args"
        yield Fault(
            code="INVALID_ARGS" if in_args else "SCHEMA_INVALID",
            step=step_id_at(written, path),
            path=dotted(path),
            message=f"{dotted(path)} {why}",
        )


def step_id_at(written: JSON, path: Path) -> str | None:
    """The id of the step that a place lies in, if it has one."""
    if len(path) < 2 or path[0] != "steps" or not isinstance(path[1], int) or not isinstance(written, Mapping):
        return None
    steps = written.get("steps")
    step = steps[path[1]] if isinstance(steps, list | tuple) and path[1] < len(steps) else None
    name = step.get("id") if isinstance(step, Mapping) else None
    return printable(name) if isinstance(name, str) else None


def _told(problem: ErrorDetails, path: Path, holder: Mapping[str, JSON]) -> tuple[str, str | None]:
    kind, given = problem["type"], problem["input"]
    context: Mapping[str, Any] = problem.get("ctx", {})
    if kind == "missing":
        return "is missing", None
    if kind == "extra_forbidden":
        return _unknown_field(path, given, holder)
    if kind in _EXPECTED:
        return f"should be {_EXPECTED[kind]}, not {kind_of(given)}", _need(path, given)
    if kind == "literal_error":
        meant = _meant(given, str(context["expected"]))
        is_call = path[-1] == "action" and meant is None and "tool" not in holder
        return f"should be one of {context['expected']}", _CALLED if is_call else meant
    if kind == "string_pattern_mismatch" and path[-1] == "id":
        return f"is {printable(str(given))!r}; {_ID_RULE}", _named(given)
    if kind == "value_error":
        return f"is not complete: {context['error']}", None
    return f"is not accepted: {problem['msg'][0].lower()}{problem['msg'][1:]}", None


def _need(path: Path, given: JSON) -> str | None:
    """What is to stand at a place instead of a value of another kind."""
    if path[-1] == "id":
        return _named(given)
    if "depends_on" in path[2:-1]:
        return 'name the step by its id, as text: "s1"'
    return _NEED.get(str(path[-1]))


def _named(given: JSON) -> str | None:
    """How to call a step instead, if what was written says."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        return None
    sound = _NO_LETTER_OF_IDS.sub("_", str(given)[:60]).strip("_-")
    return f"call it {sound if sound[0].isalpha() else f's{sound}'!r}, for example" if sound else None


def _holder(written: JSON, path: Path) -> Mapping[str, JSON]:
    """The step, or the plan, in which a place lies."""
    steps = written.get("steps") if isinstance(written, Mapping) else None
    if len(path) > 1 and path[0] == "steps" and isinstance(path[1], int) and isinstance(steps, list | tuple):
        written = steps[path[1]]
    return written if isinstance(written, Mapping) else {}


def _unknown_field(path: Path, given: JSON, holder: Mapping[str, JSON]) -> tuple[str, str | None]:
    if len(path) == 1 and isinstance(given, Mapping | str) and "steps" in given:
        return "is not a field of a plan", f"write the plan in {printable(str(path[0]))!r} as the whole answer"
    known: Collection[str] = StepDraft.model_fields if path[0] == "steps" else PlanDraft.model_fields
    meant = field_meant(str(path[-1]), [field for field in known if field not in holder])
    fix = f"did you mean {meant!r}?" if meant else f"the fields are {listed(known, 30)}"
    return f"is not a field of {'a step' if path[0] == 'steps' else 'a plan'}", fix


def _meant(given: JSON, expected: str) -> str | None:
    meant = (
        nearest(given, [word.strip("' ") for word in expected.replace(" or ", ",").split(",")])
        if isinstance(given, str)
        else None
    )
    return f"did you mean {meant!r}?" if meant else None
