"""One run of untrusted code: a fresh interpreter process, its limits, and how its end is told.

Fresh for each run, since that costs 2 to 5 ms: nothing of one run is there in the next, nothing is left to close, and
code that takes the interpreter down takes nothing else with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from plans.failure import ToolFailure
from plans.values import JSON

if TYPE_CHECKING:
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySession, MontySyntaxError, OSPolicy

GRACE_S = 0.25
"""How long after its time the interpreter may take to notice; then it is killed. One operation cannot be interrupted
from inside, such as a power of large numbers."""
MAX_SAID = 200
"""Most characters of an exception's own words in a failure's sentence."""
MAX_LINES = 1_000_000
_NAME = "code.py"
_CUT = "\n(cut: more was printed)"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one run may use. Time in seconds, memory in bytes, `printed` and `result` in characters, the latter as
    JSON. A run that would outlive its call's deadline is stopped there."""

    seconds: float = 5.0
    memory: int = 128 * 1024 * 1024
    depth: int = 200
    printed: int = 10_000
    result: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Ran:
    """What came out: the value of the last expression as the interpreter gives it, and what was printed."""

    value: Any
    printed: str


class Printed:
    """Keeps the beginning of what is printed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._text = ""
        self._cut = False

    def __call__(self, _stream: str, text: str) -> None:
        """Take what was printed, as far as there is room."""
        room = self._most - len(self._text)
        self._text += text[:room]
        self._cut = self._cut or len(text) > room

    @property
    def text(self) -> str:
        """What was kept, and that more was printed if it was."""
        return self._text + _CUT if self._cut else self._text


def run(
    code: str,
    inputs: Mapping[str, JSON],
    limits: SandboxLimits,
    *,
    seconds_left: float,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    interpreter: str | None = None,
) -> Ran:
    """Run the code to its end. Raises ToolFailure INVALID_ARGS, TOOL_ERROR, RESOURCE_LIMIT or OUTPUT_INVALID; TIMEOUT
    where no time was left to begin with. `interpreter` is the path of its program, if it is known."""
    seconds = min(limits.seconds, seconds_left - GRACE_S)
    if seconds <= 0:
        raise ToolFailure("TIMEOUT", "no time was left to run the code")
    printed = Printed(limits.printed)
    with _session(limits, seconds, interpreter) as session, _told(limits, seconds):
        value = session.feed_run(
            code, inputs=dict(inputs), external_lookup=dict(functions or {}), print_callback=printed
        )
    return Ran(value, printed.text)


@lru_cache(maxsize=256)
def syntax_problem(code: str, interpreter: str | None = None) -> str | None:
    """Why this is no code that the interpreter can read, with its line; None if it is. Nothing of it is run: it is read
    as the body of a function that nobody calls."""
    from pydantic_monty import MontyRuntimeError, MontySyntaxError

    body = "\n".join(f" {line}" for line in code.split("\n"))
    with _session(SandboxLimits(), 1.0, interpreter) as session:
        try:
            session.feed_run(f"async def _code():\n pass\n{body}\n", inputs={})
        except MontySyntaxError as error:
            return _syntax_sentence(error, lines_before=2, lines=code.count("\n") + 1)
        except MontyRuntimeError as error:
            return _unsupported(error, lines_before=2)
    return None


@contextmanager
def _session(limits: SandboxLimits, seconds: float, interpreter: str | None) -> Iterator[MontySession]:
    from pydantic_monty import Monty

    # Neither clock nor chance nor sleep: the same code with the same inputs has the same result.
    policy: OSPolicy = {
        "datetime": "call_host",
        "sleep": "zero",
        "random_start": {"seed": 0},
        "process_time": "zero",
    }
    pool = Monty(
        binary_path=interpreter,
        min_processes=1,
        max_processes=1,
        request_timeout=seconds + GRACE_S,
        feed_duration_limit_grace=GRACE_S,
        turn_duration_limit_grace=GRACE_S,
    )
    with (
        pool as workers,
        workers.checkout(
            script_name=_NAME,
            limits={
                "max_feed_duration_secs": seconds,
                "max_memory": limits.memory,
                "max_recursion_depth": limits.depth,
                "max_total_sleep_secs": 0.0,
            },
            os_policy=policy,
        ) as session,
    ):
        yield session


@contextmanager
def _told(limits: SandboxLimits, seconds: float) -> Iterator[None]:
    """Turn the interpreter's errors into failures."""
    from pydantic_monty import MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

    try:
        yield
    except MontySyntaxError as error:
        raise ToolFailure("INVALID_ARGS", f"the code cannot be read: {_syntax_sentence(error)}") from None
    except MontyRuntimeError as error:
        raise _raised(error, limits, seconds) from None
    except MontyCrashedError as error:
        raise _crashed(error, seconds) from None
    except MontyError as error:
        raise ToolFailure("TOOL_ERROR", f"the sandbox refused to run the code: {_cut(str(error))}") from None


def _raised(error: MontyRuntimeError, limits: SandboxLimits, seconds: float) -> ToolFailure:
    inner, where = error.exception(), _line(error)
    said = _cut(str(error))
    if isinstance(inner, TimeoutError) and "time limit exceeded" in said:
        return ToolFailure("RESOURCE_LIMIT", f"the code ran for its {seconds:.1f} s and was stopped; do less at once")
    if isinstance(inner, MemoryError) and "limit exceeded" in said:
        most = limits.memory // (1024 * 1024)
        return ToolFailure("RESOURCE_LIMIT", f"the code needs more than its {most} MiB of memory{where}")
    if isinstance(inner, RecursionError):
        return ToolFailure("RESOURCE_LIMIT", f"the code calls itself more than {limits.depth} levels deep{where}")
    if problem := _unsupported(error):
        return ToolFailure("INVALID_ARGS", f"the code cannot be read: {problem}")
    return ToolFailure("TOOL_ERROR", f"the code failed{where}: {said}")


def _crashed(error: MontyCrashedError, seconds: float) -> ToolFailure:
    if error.timed_out:
        return ToolFailure("RESOURCE_LIMIT", f"the code ran for its {seconds:.1f} s and was stopped; do less at once")
    return ToolFailure("TOOL_ERROR", "the code took the sandbox down with it; nothing else was touched")


def _syntax_sentence(error: MontySyntaxError, lines_before: int = 0, lines: int = MAX_LINES) -> str:
    """Code that ends too early is at fault in its last line, not in the one behind it."""
    frames = error.traceback()
    line = f"line {min(max(1, frames[-1].line - lines_before), lines)}: " if frames else ""
    return f"{line}{_cut(str(error))}"


def _unsupported(error: MontyRuntimeError, lines_before: int = 0) -> str | None:
    """What the interpreter does not know of the language, which it says by raising before anything runs."""
    inner = error.exception()
    if not isinstance(inner, NotImplementedError) or "syntax parser" not in str(error):
        return None
    told = _cut(str(inner)).replace("The monty syntax parser does not yet support", "the sandbox does not know")
    return f"{_line(error, lines_before).removeprefix(' in ')}: {told}"


def _line(error: MontyRuntimeError, lines_before: int = 0) -> str:
    frames = error.traceback()
    return f" in line {max(1, frames[-1].line - lines_before)}" if frames else ""


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_SAID else plain[: MAX_SAID - 1] + "…"
