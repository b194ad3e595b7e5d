"""What goes to a child process for one call: a function by module and name, its arguments, the context's values, and
what it finds around it."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from plans.failure import ToolFailure
from tools.callee import Callee
from tools.context import NoConnection, Progress, ToolContext

_STAYS = frozenset({"connection", "external", "progress"})
"""What of a context cannot be carried: its connections, and the ear of whoever watches."""


_CARRIED = tuple(field.name for field in fields(ToolContext) if field.name not in _STAYS)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where this process looks for modules, its folder (None where that is gone) and its environment. A child is kept,
    and each call finds what its caller has around it now, not what was there before or what another call has made."""

    path: tuple[str, ...]
    folder: str | None
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> Surroundings:
        """Those of this process."""
        folder = None
        with suppress(OSError):
            folder = str(Path.cwd())
        return cls(tuple(str(entry) or folder or "" for entry in sys.path), folder, dict(os.environ))

    def enter(self) -> None:
        """Make them those of this process, in a child."""
        sys.path[:] = self.path
        if self.folder is not None:
            with suppress(OSError):
                os.chdir(self.folder)
        if self.environment != os.environ:
            for name in os.environ.keys() - self.environment.keys():
                del os.environ[name]
            os.environ.update(self.environment)


@dataclass(frozen=True, slots=True)
class Errand:
    """One call, as it travels. `values` are its arguments and what of its context can be carried, pickled: their
    classes may be found only where the parent looks for modules."""

    around: Surroundings
    module: str
    function: str
    takes_context: str | None
    positional: tuple[str, ...]
    values: bytes

    def call(self, progress: Progress) -> Callable[[], Any]:
        """In the child: the call, still to be made. Raises what importing the module raises."""
        function = found(importlib.import_module(self.module), self.function)
        callee = Callee(function, is_async=False, context=self.takes_context, positional=self.positional)
        arguments, carried = pickle.loads(self.values)  # noqa: S301 (from our own parent)
        connection = NoConnection("a tool with isolation='process' has no connection")
        ctx = ToolContext(**carried, connection=connection, external=lambda _name: connection, progress=progress)
        return callee.bind(arguments, ctx)


def errand_of(callee: Callee, arguments: Mapping[str, Any], ctx: ToolContext) -> Errand:
    """The call as it travels. ToolFailure TOOL_ERROR for an argument whose class only this process knows. The deadline
    goes as it is: the monotonic clock is the machine's, the same in all its processes."""
    carried = {name: getattr(ctx, name) for name in _CARRIED}
    try:
        values = pickle.dumps((dict(arguments), carried))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ToolFailure("TOOL_ERROR", f"its arguments cannot be taken to another process: {error}") from None
    function = callee.function
    here = Surroundings.here()
    return Errand(here, function.__module__, function.__qualname__, callee.context, callee.positional, values)


def found(module: ModuleType | None, name: str) -> Any:
    """What a module has under a dotted name; None where it has nothing there."""
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def why_not_apart(function: Callable[..., Any]) -> str | None:
    """Why another process could not find this function, in words that follow "has isolation='process', but"; None if it
    can. Asked once its module has been imported."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if inspect.ismethod(function):
        return "it is a method of an object, which stays in its process; give a function of a module"
    if not module or not name:
        return f"it is a {type(function).__name__}, which has no name in a module; give a function"
    if module == "__main__":
        return "it is defined in the program that was started; move it into a module that can be imported"
    if found(sys.modules.get(module), name) is not function:
        said = "a lambda" if name.endswith("<lambda>") else "defined inside of a function" if "<" in name else "hidden"
        return f"it is {said}: module {module} has no {name} that another process could import; define it at the top"
    return None
