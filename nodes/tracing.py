"""Each attempt as a child run of the graph's trace, named like `s3 get_order`, so that Studio and LangSmith show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from plans.plan import Step

if TYPE_CHECKING:
    from nodes.session import Session


async def traced(session: Session, unit: str, step: Step, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work; under a config that somebody listens to, as a child run that shows how the step run ended."""
    handlers = getattr((session.config or {}).get("callbacks"), "handlers", None)
    if all(getattr(each, "only_roots", False) for each in handlers or ()):  # a child run costs as much as a step
        await work()
        return
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    async def attempt(_: dict[str, Any]) -> dict[str, Any]:
        await work()
        run = session.fold.run(unit)
        return {
            "status": run.status,
            "output_ref": run.output.output_ref if run.output else None,
            "failure": run.failure.for_model() if run.failure else None,
        }

    run = session.fold.run(unit)
    name = f"{unit} {run.tool or step.tool or step.action}"
    shown = {"step_id": unit, "attempt": run.attempt + 1, "args": step.args}
    await RunnableLambda(attempt, name=name).ainvoke(
        shown, cast("RunnableConfig", {**session.config, "run_name": name})
    )
