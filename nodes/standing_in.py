"""An attempt that calls nothing: a result kept from before, or a mock, takes the place of the tool's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.acting import ports_of
from nodes.admit import Run
from nodes.missing import note
from nodes.origins import age
from nodes.recording import record_failure, record_success
from nodes.sealing import share_secrets
from nodes.step_run import StandIn
from nodes.tools_now import current_tool
from plans.failure import Failure
from plans.plan import Step
from tools.cache import kept_result
from tools.fallbacks import labelled
from tools.mocks import NoMock, mock_value

if TYPE_CHECKING:
    from nodes.session import Session


async def stand_in(session: Session, unit: str, step: Step, admitted: Run, by: StandIn) -> None:
    """Answer an admitted step run by what stands in for its tool."""
    if by.kind == "mock":
        await _mock(session, unit, step, admitted, by)
    else:
        await _kept(session, unit, step, admitted, by)


async def _kept(session: Session, unit: str, step: Step, admitted: Run, by: StandIn) -> None:
    """The last good result of the same question. Where there is none, the failure that has led here stands."""
    started = session.clock.monotonic()
    name = step.tool or ""
    tool = await current_tool(session, name) or session.engine.registry[name]
    kept = await kept_result(tool, admitted.args, ports_of(session), at_most_s=by.at_most_s)
    if kept is None:
        await _nothing(session, unit, step, f"no result of {tool.name} from the last {age(by.at_most_s)} is kept")
        return
    value, kept_s = kept
    await share_secrets(session, value)
    told = f"answered by a result of {tool.name} from {age(kept_s)} ago, {by.because}"
    degraded = " and ".join(part for part in (told, note(admitted.missing)) if part)
    await record_success(
        session, unit, step, value, started=started, degraded=degraded,
        told={"called": False, "kept_s": round(kept_s, 3)},
    )  # fmt: skip


async def _mock(session: Session, unit: str, step: Step, admitted: Run, by: StandIn) -> None:
    started = session.clock.monotonic()
    tool = session.engine.registry[step.tool or ""]
    declared = labelled(tool.spec.fallbacks).get(by.label)
    try:
        if declared is None:
            raise NoMock("it is not declared any more")
        value = mock_value(tool, declared)
    except NoMock as error:  # the toolkit was changed after the fallback was taken
        await _nothing(session, unit, step, f"the mock of {tool.name} cannot be made: {error}")
        return
    degraded = note(admitted.missing)
    told = {"called": False, "mock": True}
    await record_success(session, unit, step, value, started=started, degraded=degraded, told=told)


async def _nothing(session: Session, unit: str, step: Step, why: str) -> None:
    run = session.fold.run(unit)
    before = run.failure or Failure(code="UNAVAILABLE", message="its tool gave nothing", tool=step.tool)
    message = f"{before.message}; {why}"
    failure = before.model_copy(update={"message": message, "step_id": unit, "attempt": run.attempt + 1})
    await record_failure(session, unit, failure, called=False)
