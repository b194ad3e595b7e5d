"""How a safeguarded call ends, and what its layers hand to each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from plans.failure import Failure
from plans.values import JSON
from tools.context import ToolContext
from tools.ports import Ports
from tools.spec import ToolSpec
from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Success:
    """A result. `degraded` says where it comes from when it is not the tool's own answer to this call (None: it is);
    `elapsed_s` is the time of the whole call, waits and retries included. `called` is False where the result was there
    already: one that was kept, `kept_s` seconds ago, or that of a call which somebody else made at the same time.
    `answered_by` names the tool that answered where it is not the one that was called but its promoted candidate."""

    value: JSON
    degraded: str | None = None
    elapsed_s: float = 0.0
    called: bool = True
    kept_s: float | None = None
    answered_by: str | None = None


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A failure, and beside it the raw error text, which belongs into an artifact and nowhere else. `called` is False
    where the function was never reached; `in_doubt` is True where an effect may have happened all the same."""

    failure: Failure
    raw: str = ""
    called: bool = True
    in_doubt: bool = False


Outcome = Success | CallFailure


@dataclass(frozen=True, slots=True)
class Late:
    """What came of a call after it had been given up, `late_s` seconds after its deadline. `disturbed` says that it had
    been told to stop before, so that what it says may be the doing of that."""

    outcome: Outcome
    late_s: float
    disturbed: bool


def _nothing() -> None:
    return None


def nobody(_late: Late) -> None:
    """Who is told of late answers where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call on its way through the layers. `spec` is the tool's, with what was changed while running, as it was at
    the instant `asked_at`; `tries` is how many attempts the run grants a step. Whoever starts the work calls `ended`
    once when the work has really ended, however long after the answer that is; `late` is told what came of it then.
    `answered_by` names the candidate that was promoted to answer the tool's calls."""

    tool: Tool
    spec: ToolSpec
    args: Mapping[str, JSON]
    ctx: ToolContext
    ports: Ports
    role: str | None = None
    ended: Callable[[], None] = _nothing
    tries: int = 0
    asked_at: float = 0.0
    answered_by: str | None = None
    late: Callable[[Late], None] = nobody


Proceed = Callable[[Call], Awaitable[Outcome]]
Layer = Callable[[Call, Proceed], Awaitable[Outcome]]


def refused(call: Call, code: str, message: str, delay_s: float | None = None, cause: str | None = None) -> CallFailure:
    """A failure of a call that was not made; `cause` is the code of what had failed before."""
    return CallFailure(failure(call, code, message, delay_s).model_copy(update={"cause": cause}), called=False)


def failure(call: Call, code: str, message: str, delay_s: float | None = None) -> Failure:
    """A failure of this call."""
    return Failure(
        code=code,
        message=message,
        step_id=call.ctx.step_id,
        tool=call.tool.name,
        attempt=call.ctx.attempt,
        delay_s=delay_s,
    )
