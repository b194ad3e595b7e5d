"""Toolkits, in which tools are declared, and the registry, in which a run finds them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar, overload

from plans.errors import ConfigurationError
from tools.callee import Scope
from tools.checks import faults_among
from tools.context import ToolContext
from tools.declaration import Declaration
from tools.examples import Example, example_faults
from tools.tool import Probe, Tool, Undo

__all__ = ["Registry", "Tool", "ToolContext", "Toolkit", "combine"]

F = TypeVar("F", bound=Callable[..., Any])


class Toolkit:
    """Tools that belong together. `schema_sql` names an idempotent SQL script as "package:file.sql", which is run once
    per database before the first use. What is wrong with a declaration is kept in `faults` and told by Registry.of,
    all at once."""

    def __init__(self, name: str, *, description: str = "", schema_sql: str | None = None) -> None:
        self.name = name
        self.description = description
        self.schema_sql = schema_sql
        self.tools: dict[str, Tool] = {}
        self.examples: list[Example] = []
        self.faults: list[str] = []

    def __repr__(self) -> str:
        return f"Toolkit({self.name!r}, tools: {', '.join(self.tools) or 'none'})"

    @property
    def notices(self) -> list[str]:
        """What whoever starts a run should know about tools that are not there."""
        return []

    def why_absent(self, name: str) -> str | None:  # noqa: ARG002 (nothing of Python's is absent)
        """Why a tool that may have been one of these is not there; None: it is none of these."""
        return None

    @overload
    def tool(self, fn: F, /) -> F: ...

    @overload
    def tool(
        self,
        fn: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        args_schema: object = None,
        undo: Undo | None = None,
        probe: Probe | None = None,
        **spec: Any,
    ) -> Callable[[F], F]: ...

    def tool(self, fn: F | None = None, /, **declared: Any) -> F | Callable[[F], F]:
        """Declare the decorated function as a tool, bare or with the fields of a ToolSpec. The function stays what it
        is. Its name, docstring, parameters and result annotation describe the tool; a parameter annotated with
        ToolContext gets the run's context. Without `effect` the tool counts as irreversible."""
        scope = _scope_of(inspect.currentframe())

        def declare(function: F) -> F:
            self._add(function, scope, **declared)
            return function

        return declare if fn is None else declare(fn)

    def add(
        self,
        tool: Any,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        args_schema: object = None,
        undo: Undo | None = None,
        probe: Probe | None = None,
        **spec: Any,
    ) -> Tool:
        """Declare a function, method, partial, callable object or LangChain BaseTool (MCP tools are) as a tool.
        `args_schema` is a JSON schema or a pydantic model; without it the signature says what the arguments are."""
        return self._add(
            tool,
            _scope_of(inspect.currentframe()),
            name=name,
            description=description,
            args_schema=args_schema,
            undo=undo,
            probe=probe,
            **spec,
        )

    def example(self, goal: str, plan: Mapping[str, Any]) -> None:
        """Show planners how these tools serve a goal, by a plan as its author would write it. It is checked with the
        tools' declarations, and shown only to runs that may use all of its tools."""
        self.examples.append(Example.of(goal, plan))

    def _add(
        self,
        given: Any,
        scope: Scope,
        *,
        name: str | None = None,
        description: str | None = None,
        args_schema: object = None,
        undo: Undo | None = None,
        probe: Probe | None = None,
        **options: Any,
    ) -> Tool:
        declaration = Declaration(
            self.name, given, name, description, args_schema, undo, probe, options=options, scope=scope
        )
        tool, faults = declaration.made()
        if tool.name in self.tools:
            faults.append(f"tool {tool.name!r} is declared twice; give one of them another name")
        self.faults += faults
        return self.tools.setdefault(tool.name, tool)


class Registry(Mapping[str, Tool]):
    """The tools of a run by name, in the order of their toolkits. A shadow is none of them: no plan can call it.
    `declared` has all, and `shadows` the shadows, each by the name of the tool that it shadows."""

    def __init__(self, toolkits: Sequence[Toolkit], tools: Mapping[str, Tool]) -> None:
        self.toolkits = tuple(toolkits)
        self.declared = dict(tools)
        self.shadows = {tool.spec.shadow_of: tool for tool in tools.values() if tool.spec.shadow_of is not None}
        self._tools = {name: tool for name, tool in tools.items() if tool.spec.shadow_of is None}

    @classmethod
    def of(cls, *toolkits: Toolkit) -> Registry:
        """The tools of these toolkits. ConfigurationError with every fault of every declaration. Where tools are
        declared outside of Python this waits until they are found: not for an event loop."""
        _gather(toolkits)
        return cls(toolkits, _declared(toolkits))

    @property
    def notices(self) -> list[str]:
        """What whoever starts a run should know about tools that are not there."""
        return [notice for toolkit in self.toolkits for notice in toolkit.notices]

    def why_absent(self, name: str) -> str | None:
        """Why a tool of this name is not there, where one of the toolkits can tell."""
        if (shadow := self.declared.get(name)) is not None and shadow.spec.shadow_of is not None:
            return f"it is the shadow of {shadow.spec.shadow_of}, and only called beside it"
        return next((why for toolkit in self.toolkits if (why := toolkit.why_absent(name))), None)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def combine(builtin: Sequence[Toolkit], own: Sequence[Toolkit]) -> tuple[Registry, list[str]]:
    """A user's toolkits, and those built in that they do not replace: by the toolkit's name, or by that of any tool.
    The texts say which were left out and why."""
    _gather(own)
    kept: list[Toolkit] = []
    notices: list[str] = []
    for toolkit in builtin:
        if (reason := _replaced(toolkit, own)) is None:
            kept.append(toolkit)
        else:
            notices.append(f"the built-in toolkit {toolkit.name!r} is left out: {reason}")
    registry = Registry((*kept, *own), _declared((*kept, *own)))
    return registry, notices + registry.notices


def _declared(toolkits: Sequence[Toolkit]) -> dict[str, Tool]:
    """All tools by name. ConfigurationError with every fault."""
    faults: list[str] = []
    tools: dict[str, Tool] = {}
    names: set[str] = set()
    for toolkit in toolkits:
        if toolkit.name in names:
            faults.append(f"there are two toolkits named {toolkit.name!r}; rename one of them")
        names.add(toolkit.name)
        faults += toolkit.faults
        for tool in toolkit.tools.values():
            faults += _clash(tool, tools.setdefault(tool.name, tool))
    faults += faults_among(tools)
    for toolkit in toolkits:
        faults += example_faults(toolkit.name, toolkit.examples, tools)
    if faults:
        raise ConfigurationError(_listed(faults))
    return tools


def _gather(toolkits: Sequence[Toolkit]) -> None:
    """Find the tools that are declared outside of Python."""
    from tools.outside import gather, outside

    gather(outside(toolkits))


def _replaced(toolkit: Toolkit, own: Iterable[Toolkit]) -> str | None:
    for other in own:
        if other.name == toolkit.name:
            return "yours has the same name"
        if shared := sorted(toolkit.tools.keys() & other.tools.keys()):
            return f"your toolkit {other.name!r} has tools of the same names ({', '.join(shared)})"
    return None


def _clash(tool: Tool, other: Tool) -> list[str]:
    if tool is other:
        return []
    return [f"tool {tool.name!r} is in the toolkits {other.toolkit!r} and {tool.toolkit!r}; rename one of them"]


def _listed(faults: Sequence[str]) -> str:
    if len(faults) == 1:
        return faults[0]
    return f"{len(faults)} faults in the declared tools:\n" + "\n".join(f"- {fault}" for fault in faults)


def _scope_of(frame: FrameType | None) -> Scope:
    """The names around the place that called into the toolkit."""
    caller = frame.f_back if frame is not None else None
    return caller.f_locals if caller is not None else {}
