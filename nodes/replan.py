"""replan: one failed step, its failure and the tools go to a small model; everything else of the plan stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodes.catalog import in_our_words
from nodes.journaled_model import JournaledModel
from nodes.ladder import is_answered
from nodes.model_errors import ModelFailed
from nodes.offered import finished_steps, offered_tools, prompt_inputs
from nodes.replanner import REPLANNER, Broken, redraw_step, with_replacement
from nodes.state import AgentState, Drafted, Planning
from nodes.step_run import base_id
from nodes.validate import stored_draft
from plans.faults import Fault
from tools.person import asks_user

if TYPE_CHECKING:
    from nodes.session import Session


async def replan(state: AgentState, session: Session) -> dict[str, Any]:
    """A draft that differs from the current plan in the failed step only."""
    planning = state.get("planning") or Planning()
    if is_answered(session, planning):
        return {"drafted": stored_draft(session)}
    step_id = base_id(planning.step_id or "")
    failure = session.fold.run(step_id).failure
    model = session.engine.small
    if failure is None or model is None:
        fault = Fault(code="MODEL_NOT_CONFIGURED", message="a local replan needs a model; set SURESTEP_SMALL_MODEL")
        return {"drafted": Drafted(source="local_replan", faults=(fault,))}
    key = f"replan:{session.plan.revision}:{planning.trigger}:{planning.tries}"
    try:
        broken = Broken(
            session.plan,
            in_our_words(failure, session.engine.registry.get(failure.tool or "")),
            prompt_inputs(session.head),
            own=session.engine.registry.get(session.plan.step(step_id).tool or ""),
            finished=await finished_steps(session),
            faults=state.get("faults") or [],
        )
        asked, closer = (JournaledModel(session, model, each) for each in (key, f"{key}:closer"))
        tools = [tool for tool in await offered_tools(session) if not asks_user(tool)]  # a repair is no talk
        repair = await redraw_step(asked, broken, tools, closer=closer)
    except ModelFailed as error:
        fault = Fault(code="MODEL_FAILED", message=str(error))
        drafted = Drafted(
            source="local_replan",
            template=session.plan.template,
            model=model.settings.model,
            prompt_sha256=REPLANNER.sha256,
            question=key,
            faults=(fault,),
        )
        return {"drafted": drafted}
    drafted = Drafted(
        draft=with_replacement(session.plan, repair.step) if repair.step is not None else None,
        source="local_replan",
        template=session.plan.template,
        repaired=repair.repaired,
        prompt_sha256=repair.prompt_sha256,
        model=repair.answer.model,
        mode=repair.answer.mode,
        question=key,
        faults=repair.faults,
    )
    return {"drafted": drafted}
