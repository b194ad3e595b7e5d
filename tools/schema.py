"""A tool's arguments: from a signature, a pydantic model or a JSON schema, as one thing to check and to call with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack, cast, get_origin

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from plans.values import JSON, Path
from tools.callee import NOTHING, Callee, Signature, Unusable
from tools.json_arguments import SchemaArguments
from tools.problems import Problem
from tools.typed_arguments import TypedArguments

ArgsSchema = Mapping[str, Any] | type[BaseModel]


class Arguments(Protocol):
    """What a tool accepts."""

    schema: dict[str, Any]

    @property
    def names(self) -> frozenset[str]:
        """The arguments it knows by name."""
        ...

    @property
    def open(self) -> bool:
        """Whether it takes others too."""
        ...

    def problems(self, args: Mapping[str, JSON], references: Sequence[Path]) -> list[Problem]:
        """Every problem at once; what stands at or under a reference is not known yet and has none."""
        ...

    def typed(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The values to call with, of arguments without problems."""
        ...

    def taken(self, args: Mapping[str, JSON]) -> tuple[dict[str, Any], list[Problem]]:
        """The values to call with, and every problem, without which they are complete."""
        ...

    def comparable(self, args: Mapping[str, JSON]) -> dict[str, Any]:
        """The arguments as conditions see them: JSON, except that Decimals are numbers."""
        ...

    def fault(self) -> str | None:
        """What is wrong with the declaration itself."""
        ...


def of_signature(signature: Signature) -> TypedArguments:
    """The arguments of a typed function. Fields get names of their own: a parameter may be called `schema` or `_x`,
    which a pydantic field may not. Raises Unusable for a type that JSON cannot give."""
    extras = signature.extras
    if get_origin(extras) is Unpack:
        raise Unusable("takes its arguments as Unpack[...]; write them out in the signature")
    fields = {f"p{index}": parameter for index, parameter in enumerate(signature.parameters)}
    names = {field: parameter.name for field, parameter in fields.items()}
    config = ConfigDict(
        extra="forbid" if extras is NOTHING else "allow",
        alias_generator=lambda field: names.get(field, field),
        arbitrary_types_allowed=False,
    )
    try:
        model = create_model(
            "Arguments",
            __base__=_base(config, extras),
            **cast("dict[str, Any]", {field: _field(parameter) for field, parameter in fields.items()}),
        )
        return TypedArguments(model, names, open_=extras is not NOTHING)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        raise Unusable(f"has an argument that JSON cannot give: {_first_line(error)}") from None


def of_declaration(declared: object, callee: Callee, signature: Signature) -> Arguments:
    """The arguments as declared beside a function, which must take them. Raises Unusable."""
    if isinstance(declared, Mapping):
        arguments = SchemaArguments(declared)
        _refuse_mismatch(arguments.names, callee, signature)
        return arguments
    if not (inspect.isclass(declared) and issubclass(declared, BaseModel)):
        raise Unusable("has an args_schema that is neither a JSON schema (a dict) nor a pydantic model")
    _refuse_mismatch(frozenset(declared.model_fields), callee, signature)
    return of_model(declared)


def of_model(model: type[BaseModel]) -> TypedArguments:
    """The arguments that are the fields of a pydantic model."""
    return TypedArguments(
        model, {field: field for field in model.model_fields}, open_=model.model_config.get("extra") == "allow"
    )


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    annotation = Any if parameter.annotation is NOTHING else parameter.annotation
    return annotation, ... if parameter.default is NOTHING else parameter.default


def _base(config: ConfigDict, extras: Any) -> type[BaseModel]:
    """A model with this configuration, whose further arguments have the type of **kwargs."""
    members: dict[str, Any] = {"__module__": __name__, "model_config": config}
    if extras not in (NOTHING, Any):
        members["__annotations__"] = {"__pydantic_extra__": dict[str, extras]}
    return type("Arguments", (BaseModel,), members)


def _refuse_mismatch(handed: frozenset[str], callee: Callee, signature: Signature) -> None:
    taken = {parameter.name: parameter for parameter in signature.parameters}
    needed = {name for name, parameter in taken.items() if parameter.default is NOTHING}
    if callee.context in handed:
        raise Unusable(f"has an args_schema with {callee.context!r}, which is where its context goes")
    if lacking := sorted(needed - handed):
        raise Unusable(f"needs the argument {lacking[0]!r}, which its args_schema does not have")
    if signature.extras is NOTHING and (foreign := sorted(handed - taken.keys())):
        raise Unusable(f"has an args_schema with {foreign[0]!r}, which the function does not take")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", maxsplit=1)[0]
