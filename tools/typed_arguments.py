"""Arguments described by a pydantic model, checked with the strict typing of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails, to_jsonable_python

from plans.values import JSON, Path, unclean
from tools.problems import Problem, kind_of, scrubbed, unknown, within


class TypedArguments:
    """The fields of a model. `parameters` maps its fields to the parameters they are handed to; `open` takes others
    too. Unknown keys are refused in nested models as well, unless one of them says that it takes any."""

    def __init__(self, model: type[BaseModel], parameters: Mapping[str, str], *, open_: bool = False) -> None:
        self._model = model
        self._parameters = dict(parameters)
        self.open = open_
        self.schema = _schema(model, open_=open_)
        self._extra: str | None = None if open_ or _some_open(self.schema) else "forbid"

    @property
    def names(self) -> frozenset[str]:
        """The arguments as a caller names them."""
        return frozenset(self.schema["properties"])

    def fault(self) -> str | None:
        """A model that exists is sound."""
        return None

    def problems(self, args: Mapping[str, JSON], references: Sequence[Path]) -> list[Problem]:
        """Every problem, except those that a reference's value will settle."""
        clean, found = scrubbed(args)
        unsettled = [*references, *(path for path, _ in found)]
        try:
            self._validated(clean)
        except ValidationError as error:
            located = [_located(details, clean) for details in error.errors(include_url=False)]
            found += _told(_remaining(located, unsettled, 0), sorted(self.names))
        return found + self._unknown(clean)

    def typed(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The values to call with, defaults included; ValidationError if there are problems."""
        made = self._validated(args)
        values = {parameter: getattr(made, field) for field, parameter in self._parameters.items()}
        return {**(made.model_extra or {}), **values} if self.open else values

    def taken(self, args: Mapping[str, JSON]) -> tuple[dict[str, Any], list[Problem]]:
        """The values to call with, or else every problem: one validation where there is none."""
        if next(iter(unclean(args)), None) is None and not self._unknown(args):
            with suppress(ValidationError):
                return self.typed(args), []
        return {}, self.problems(args, ())

    def comparable(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The arguments by the names a caller uses, as JSON with Decimals as numbers; as they came if they have
        problems."""
        try:
            made = self._validated(args)
        except ValidationError:
            return dict(args)
        return {name: _comparable(value) for name, value in made.model_dump(by_alias=True).items()}

    def _validated(self, args: Mapping[str, JSON]) -> BaseModel:
        return self._model.model_validate_json(json.dumps(args), strict=True, extra=self._extra)  # type: ignore[arg-type]

    def _unknown(self, args: Mapping[str, JSON]) -> list[Problem]:
        """Keys that a model of the user's would drop without a word."""
        if self.open or self._extra == "forbid":
            return []
        known = self.names
        return [((name,), unknown(name, sorted(known))) for name in args if name not in known]


def _comparable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_comparable(item) for item in value]
    return value if isinstance(value, Decimal) else to_jsonable_python(value)


@dataclass(frozen=True, slots=True)
class _Located:
    """A problem, its place in the given arguments, and the branches of unions on the way there."""

    path: Path
    branches: tuple[tuple[Path, str | int], ...]
    details: ErrorDetails


def _located(details: ErrorDetails, args: JSON) -> _Located:
    """Pydantic's location also names branches of unions: what leads nowhere in the arguments is one."""
    here: JSON = args
    path: Path = ()
    branches: list[tuple[Path, str | int]] = []
    last = len(details["loc"]) - 1
    for index, part in enumerate(details["loc"]):
        if _leads(here, part):
            here = here[part]
            path = (*path, part)
        elif index == last and details["type"] == "missing":
            path = (*path, part)
        else:
            branches.append((path, part))
    return _Located(path, tuple(branches), details)


def _leads(here: JSON, part: str | int) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)


def _remaining(problems: Sequence[_Located], references: Sequence[Path], depth: int) -> list[_Located]:
    """The problems that references do not explain. A union has none as soon as one of its branches has none left;
    of a union that has, the branch that fits best is told."""
    kept = [p for p in problems if len(p.branches) <= depth and not _settled(p, references)]
    unions: dict[Path, dict[str | int, list[_Located]]] = {}
    for problem in problems:
        if len(problem.branches) > depth:
            place, branch = problem.branches[depth]
            unions.setdefault(place, {}).setdefault(branch, []).append(problem)
    for branches in unions.values():
        left = [_remaining(members, references, depth + 1) for members in branches.values()]
        if all(left):
            kept += _best(left)
    return kept


def _settled(problem: _Located, references: Sequence[Path]) -> bool:
    return problem.details["type"] not in ("extra_forbidden", "missing") and within(problem.path, references)


def _best(branches: Sequence[list[_Located]]) -> list[_Located]:
    """The branch whose problems lie deepest, hence which came nearest; all of them when none got further."""
    depth = max(len(problem.path) for branch in branches for problem in branch)
    nearest = [branch for branch in branches if max(len(problem.path) for problem in branch) == depth]
    if len({problem.path for branch in nearest for problem in branch}) == 1:
        return [problem for branch in nearest for problem in branch]
    return min(nearest, key=len)


def _told(problems: Sequence[_Located], known: Sequence[str]) -> list[Problem]:
    """One sentence per place."""
    sentences: dict[Path, list[str]] = {}
    for problem in problems:
        sentences.setdefault(problem.path, []).append(_sentence(problem, known))
    return [(path, " or ".join(dict.fromkeys(said))) for path, said in sentences.items()]


def _sentence(problem: _Located, known: Sequence[str]) -> str:
    details = problem.details
    if details["type"] == "extra_forbidden":
        name = str(problem.path[-1])
        return unknown(name, known) if len(problem.path) == 1 else f"{name!r} is not allowed there"
    if details["type"] == "missing":
        return "is missing"
    said = details["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{said}, not {kind_of(details['input'])}" if details["type"].endswith("_type") else said


class PlainSchema(GenerateJsonSchema):
    """JSON schema without titles made up from field names, and silent about defaults it cannot write."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (the library's signature)
        """Never: a name is its own title."""
        return False


def _schema(model: type[BaseModel], *, open_: bool) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, schema_generator=PlainSchema, mode="validation")
    schema.pop("title", None)
    schema.setdefault("properties", {})
    schema["additionalProperties"] = schema.get("additionalProperties", True) if open_ else False
    if not _some_open(schema):
        for nested in schema.get("$defs", {}).values():
            if "properties" in nested:
                nested["additionalProperties"] = False
    return schema


def _some_open(schema: Mapping[str, Any]) -> bool:
    return any("properties" in d and d.get("additionalProperties", False) for d in schema.get("$defs", {}).values())
