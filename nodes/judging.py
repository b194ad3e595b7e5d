"""An `action: llm` step: a model judges or writes from what the step's dependencies gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodes.journaled_model import JournaledModel, LimitReached
from nodes.judge import judge, values_for
from nodes.missing import note, without
from nodes.model_errors import ModelFailed
from nodes.origins import degraded_inputs
from nodes.recording import record_failure, record_refusal, record_success
from nodes.step_run import child_index
from plans.failure import Failure
from plans.plan import Step
from plans.references import UnresolvedReference, references_in
from plans.sameness import same_call
from plans.values import JSON, sha256_of

if TYPE_CHECKING:
    from nodes.session import Session


async def call_model(
    session: Session, unit: str, step: Step, named: Mapping[str, JSON], missing: tuple[str, ...]
) -> None:
    """Ask, check against the step's schema, and store; once accepted the answer is never asked for again."""
    attempt = session.fold.run(unit).attempt + 1
    started = session.clock.monotonic()
    model = session.engine.small
    if model is None:
        await _failed(
            session,
            unit,
            attempt,
            "MODEL_NOT_CONFIGURED",
            "a judgement (action: llm) needs a model; set SURESTEP_MODEL",
        )
        return
    try:
        journaled = JournaledModel(session, model, _question(session, unit, step, attempt))
        values = _values(step, named, missing)
        degraded = degraded_inputs(session.fold, step, unit)
        call = same_call("llm", {"instruction": step.instruction, "values": values})
        judgement = await judge(journaled, step, values, goal=session.head.goal, missing=missing, degraded=degraded)
    except UnresolvedReference as error:
        await _failed(session, unit, attempt, "UNRESOLVED_REFERENCE", str(error))
    except LimitReached as error:
        failure = Failure(code=error.code, message=str(error), step_id=unit, tool="llm", attempt=attempt)
        await record_refusal(session, unit, failure)
    except ModelFailed as error:
        await _failed(session, unit, attempt, error.code, str(error), error.delay_s)
    else:
        told = {"call": call}
        await record_success(session, unit, step, judgement.value, started=started, degraded=note(missing), told=told)


def _question(session: Session, unit: str, step: Step, attempt: int) -> str:
    """Names the question by step run and attempt, and by what the step is since which revision: redefined, or dropped
    and taken up again, it is another question."""
    index = child_index(unit)
    element = None if index is None else session.fold.expansions[step.id][index]
    since = session.fold.since.get(step.id, 0)
    return f"step:{unit}:{attempt}:{since}:{sha256_of([step.model_dump(mode='json'), element])[:12]}"


def _values(step: Step, named: Mapping[str, JSON], missing: tuple[str, ...]) -> dict[str, JSON]:
    """What the model sees by reference; what is missing stands there as null."""
    present = {name: value for name, value in named.items() if name not in missing}
    written = [step.instruction, step.args]
    readable = step.model_copy(
        update={"instruction": str(without(step.instruction, missing)), "args": without(step.args, missing)}
    )
    absent = {str(reference): None for reference in references_in(written) if reference.name in missing}
    return absent | values_for(readable, present)


async def _failed(
    session: Session, unit: str, attempt: int, code: str, message: str, delay_s: float | None = None
) -> None:
    failure = Failure(code=code, message=message, step_id=unit, tool="llm", attempt=attempt, delay_s=delay_s)
    await record_failure(session, unit, failure)
