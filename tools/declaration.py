"""From something that can be called and what was declared about it to a Tool, with everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tools import langchain
from tools.callee import Callee, Scope, Unusable, description_of, name_of, read
from tools.docstrings import described, with_descriptions
from tools.output import Result
from tools.probing import probing_tool
from tools.schema import Arguments, of_declaration, of_model, of_signature
from tools.spec import ToolSpec
from tools.spec_faults import sentence
from tools.tool import Probe, Tool, Undo

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Declaration:
    """What was said about a tool where it was added to a toolkit; `scope` are the names around that place."""

    toolkit: str
    given: Any
    name: str | None = None
    description: str | None = None
    args_schema: object = None
    undo: Undo | None = None
    probe: Probe | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope = field(default_factory=dict)

    def made(self) -> tuple[Tool, list[str]]:
        """The tool and its faults, in plain words. A tool with faults is never registered, so it is never called."""
        faults: list[str] = []
        name = self.name or self._own_name()
        try:
            callee, arguments, result = self._look()
        except Unusable as error:
            faults.append(str(error))
            callee, arguments, result = _NOT_CALLABLE
        isolation = "async" if callee.is_async else "thread"
        description, texts = self._described(arguments)
        arguments.schema = with_descriptions(arguments.schema, texts)
        spec, more = spec_of({"isolation": isolation, **self.options, "name": name, "description": description})
        if not faults:
            more += _isolation_faults(spec, isolation, self.given)
        more += _probe_faults(spec, self.probe)
        tool = Tool(spec, arguments, result, callee, toolkit=self.toolkit, undo=self.undo, probe=self.probe)
        return tool, [f"tool {name!r} {fault}" for fault in faults + more]

    def _look(self) -> tuple[Callee, Arguments, Result]:
        if langchain.is_base_tool(self.given):
            return self._look_at_base_tool()
        if not callable(self.given):
            raise Unusable(f"is a {type(self.given).__name__}; give a function, an object to call or a LangChain tool")
        callee, signature = read(self.given, self.scope)
        result = Result(signature.returns)
        if self.args_schema is None:
            return callee, of_signature(signature), result
        return callee, of_declaration(self.args_schema, callee, signature), result

    def _look_at_base_tool(self) -> tuple[Callee, Arguments, Result]:
        if self.args_schema is not None:
            raise Unusable("is a LangChain tool, which brings its own args_schema; leave the other out")
        return langchain.callee_of(self.given), langchain.arguments_of(self.given), Result()

    def _own_name(self) -> str:
        """A function's own name as it is; that of a foreign tool made safe, since nobody here chose it."""
        if langchain.is_base_tool(self.given):
            return _UNSAFE.sub("_", self.given.name)[:64]
        return name_of(self.given) if callable(self.given) else type(self.given).__name__

    def _described(self, arguments: Arguments) -> tuple[str, dict[str, str]]:
        """What the tool does, and what its arguments are: from the docstring where nothing else is said."""
        if langchain.is_base_tool(self.given):
            return (str(self.given.description) if self.description is None else self.description), {}
        docstring = description_of(self.given) if callable(self.given) else ""
        said, texts = described(docstring, arguments.names)
        return (said if self.description is None else self.description), texts


class _UnreadArguments(BaseModel):
    """Stands where the arguments could not be read: it takes any, so that no other fault is made of it."""

    model_config = ConfigDict(extra="allow")


def _never(**_arguments: Any) -> None:
    raise AssertionError("a tool with faults was called")


_NOT_CALLABLE: tuple[Callee, Arguments, Result] = (Callee(_never, is_async=False), of_model(_UnreadArguments), Result())


def spec_of(declared: dict[str, Any]) -> tuple[ToolSpec, list[str]]:
    """The spec and its faults; what is at fault is replaced by its default, so that the rest can be judged too."""
    try:
        return ToolSpec(**declared), []
    except ValidationError as error:
        problems = error.errors(include_url=False)
    wrong = {problem["loc"][0] for problem in problems if problem["loc"]}
    sound = {key: value for key, value in declared.items() if key not in wrong}
    sound.setdefault("name", _UNSAFE.sub("_", str(declared["name"]))[:64] or "unnamed")
    return ToolSpec(**sound), list(dict.fromkeys(sentence(problem) for problem in problems))


def _probe_faults(spec: ToolSpec, probe: Probe | None) -> list[str]:
    if probe is None:
        return []
    if spec.effect == "read":
        return ["only reads, so there is nothing for a probe to find out"]
    try:
        probing_tool(spec.name, probe, spec.timeout_s)
    except Unusable as error:
        return [str(error)]
    return []


def _isolation_faults(spec: ToolSpec, possible: str, given: Any) -> list[str]:
    """Whether another process could find the function is asked later, when its module is complete."""
    if spec.isolation == "process":
        said = []
        if langchain.is_base_tool(given):
            said.append("has isolation='process', but it is a LangChain tool, an object that stays in its process")
        if spec.effect == "transactional":
            said.append("is transactional and has isolation='process', where the run's transaction cannot follow it")
        return said
    if spec.isolation != possible:
        kind = "an async function, which runs on the loop" if possible == "async" else "a plain function: a thread"
        return [f"has isolation={spec.isolation!r}, but it is {kind}; leave it out"]
    return []
