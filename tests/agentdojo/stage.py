"""A suite of AgentDojo as a toolkit: its own functions, on the environment that is on stage."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime
from agentdojo.task_suite.task_suite import TaskSuite
from pydantic import BaseModel

from plans.failure import ToolFailure
from tools.registry import Toolkit

READS = ("get_", "read_", "search_", "list_", "check_")
"""How the names of tools begin that only look; all others change the environment."""
GOES_OUT = {"get_webpage": ("url",)}
"""Reads whose argument leaves the house: what is asked for is told to whoever is asked."""


@dataclass(slots=True)
class Stage:
    """The environment of the run that is played, and what was called in it."""

    suite: TaskSuite[Any]
    environment: Any = None
    called: list[FunctionCall] = field(default_factory=list)
    runtime: FunctionsRuntime = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = FunctionsRuntime(self.suite.tools)

    def set(self, environment: Any) -> None:
        """Begin with this environment."""
        self.environment = environment
        self.called.clear()

    def call(self, name: str, args: dict[str, Any]) -> Any:
        """What AgentDojo's function gives, as JSON; its exception is a failure of the tool."""
        self.called.append(FunctionCall(function=name, args=args))
        result, error = self.runtime.run_function(self.environment, name, args)
        if error is not None:
            raise ToolFailure("TOOL_ERROR", error[:300])
        return result.model_dump(mode="json") if isinstance(result, BaseModel) else _plain(result)

    def shown(self, value: Any) -> str:
        """A result as AgentDojo shows it to models."""
        return str(tool_result_to_str(value))


def toolkit(stage: Stage, *, trusted: bool = False) -> Toolkit:
    """The suite's tools. `trusted` says of all of them that no stranger has a say in what they return: then nothing is
    tainted, which is how Surestep is without that defence."""
    kit = Toolkit(stage.suite.name)
    for function in stage.suite.tools:
        reads = function.name.startswith(READS)
        options: dict[str, Any] = {"effect": "read" if reads else "idempotent"}
        options |= {"sensitive_args": GOES_OUT[function.name]} if function.name in GOES_OUT else {}
        options |= {"output_trust": "trusted"} if trusted else {}
        schema = function.parameters.model_json_schema()
        kit.add(_calling(stage, function), args_schema=schema, repeats=None, **options)
    kit.add(lookup, effect="read", breaker={"failure_rate": 0.99, "in_a_row": 10, "min_calls": 10}, repeats=None)
    return kit


async def lookup(name: str) -> str:
    """Look a name up in the directory."""
    raise ToolFailure("NOT_FOUND", f"there is no {name}; ask somebody else")


def is_read(name: str) -> bool:
    """Whether a tool only looks, and at nothing outside."""
    return name.startswith(READS) and name not in GOES_OUT


def _calling(stage: Stage, function: Function[Any, Any]) -> Any:
    async def call(**args: Any) -> Any:
        return stage.call(function.name, args)

    names = function.parameters.model_fields
    call.__name__ = function.name
    call.__doc__ = function.description
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Any) for name in names]
    call.__signature__ = inspect.Signature(parameters, return_annotation=Any)  # type: ignore[attr-defined]
    return call


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
