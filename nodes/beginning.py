"""The run that an input at the graph's own door begins, or has begun before: a request is one run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from checkpoints.runs import OPEN
from nodes.acting import role_wanted
from nodes.archived import Archived
from nodes.engine import Engine
from nodes.given import given_draft
from nodes.ids import new_id
from nodes.inbox import goal_text
from nodes.inputs import declared_inputs, strange_inputs
from nodes.instructions import told
from nodes.requests import run_record
from nodes.sealing import Sealing
from nodes.session import Session
from nodes.state import AgentState, Context, Review, RunHead
from plans.errors import InvalidInput, RunBusy
from plans.goals import check_goal
from plans.limits import Limits
from plans.principals import Principal

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoints.runs import RunRecord

LOOK_EVERY_S = 0.2
"""How often it is looked whether a run that somebody else drives has ended, or has lost its driver."""


async def begun(
    engine: Engine, state: AgentState, config: RunnableConfig, context: Context | None, who: Principal
) -> Session:
    """The run that this input begins. Sent again (a rescued job, a double click) it is the same run.

    A run that is driven on another thread or by another worker is waited for, and gone on with if that one dies (rule
    16). Raises Archived for one that is in the archive, InvalidInput, NotPermitted, UsageError where the thread has an
    open run.
    """
    thread_id = thread_of(config) or new_id()
    request_id = state.get("request_id") or _request_of(config)
    open_here = engine.driving(thread_id, request_id)
    if open_here is not None and open_here.config is None:  # by the gateway, for this very drive
        return open_here
    known = await engine.runs.by_request(request_id, who.tenant)
    if known is not None:
        if known.archived is not None:
            raise Archived(known.archived)
        return await _once_free(engine, known.run_id, thread_id)
    who.check_may_start(engine.options.start_roles)
    sealing = Sealing.of(engine)
    head = await _head(engine, state, thread_id, request_id, context, who, sealing)
    if not state.get("request_id") and (lost := await _sent_before(engine, head)) is not None:
        return await _once_free(engine, lost, thread_id)
    if head.given_plan is None and engine.planner is not None and (going_on := await _open_run(engine, head)):
        who.acting_in(going_on.input.get("role"))
        session = await _once_free(engine, going_on.run_id, thread_id)
        await sealing.keep(going_on.run_id)
        await told(session, head.request_id, head.goal, who)
        return session
    await sealing.keep(head.run_id)
    return await engine.begin(head)


async def _sent_before(engine: Engine, head: RunHead) -> str | None:
    """The thread's open run, if it was begun by the same input: its process died before any checkpoint was written."""
    latest = await _open_run(engine, head)
    same = latest and latest.input_sha256 == run_record(head, engine.options.plan_versions).input_sha256
    return latest.run_id if latest and same else None


async def _open_run(engine: Engine, head: RunHead) -> RunRecord | None:
    """The run that is not over on the thread of this one. What is said there before any of its checkpoints was written,
    is said to that run."""
    latest = await engine.runs.latest(head.thread_id)
    return latest if latest is not None and latest.status in OPEN and latest.tenant == head.tenant else None


async def _once_free(engine: Engine, run_id: str, thread_id: str) -> Session:
    while True:
        here = engine.sessions.get(run_id)
        if here is None or here.config is None or thread_of(here.config) in (None, thread_id):
            with suppress(RunBusy):
                return await engine.session(run_id)
        await asyncio.sleep(LOOK_EVERY_S)


async def _head(
    engine: Engine,
    state: AgentState,
    thread_id: str,
    request_id: str,
    context: Context | None,
    who: Principal,
    sealing: Sealing,
) -> RunHead:
    inputs, files = await declared_inputs(state.get("inputs") or {}, *folder_of_inputs(engine, who))
    goal, given = goal_text(state), state.get("plan")
    if goal is None and given is None:
        raise InvalidInput("there is no goal: send `goal`, or `messages` that end with a person's message")
    draft = given_draft(given) if given is not None else None
    return new_head(
        thread_id=thread_id,
        request_id=request_id,
        goal=sealing.text(check_goal(goal or (draft.goal if draft else ""))),
        inputs=sealing.inputs(inputs),
        files=files,
        untrusted=strange_inputs(state.get("inputs") or {}),
        given_plan=sealing.draft(draft) if draft is not None else None,
        limits=(context and context.limits) or Limits(),
        approve=(context and context.approve) or "ask",
        review=stricter(engine.options.review, (context and context.review) or "none"),
        output=engine.options.output,
        role=who.acting_in(role_wanted(context)),
        tenant=who.tenant,
        started_by=who.name,
    )


def stricter(*reviews: Review) -> Review:
    """Of what is said about reviews by several the strictest: who asks for one is not outvoted."""
    return max(reviews, key=get_args(Review).index)


def folder_of_inputs(engine: Engine, who: Principal) -> tuple[Path | None, bool]:
    """Where a client's files are, and whether the folders in there are others': each tenant has one of its name, and
    who comes without a tenant where tokens may name one has what lies beside them."""
    root = engine.options.input_root
    if root is None or who.tenant:
        return root and root / who.tenant, False
    return root, engine.options.principal is None


def new_head(*, output: Path, **fields: Any) -> RunHead:
    """A run's head under a new id; its files go into a folder of that name."""
    run_id = new_id()
    return RunHead(run_id=run_id, output_folder=str(output / run_id), **fields)


def thread_of(config: RunnableConfig) -> str | None:
    """The LangGraph thread of this invocation."""
    found = config.get("configurable", {}).get("thread_id")
    return None if found is None else str(found)


def _request_of(config: RunnableConfig) -> str:
    """The caller's own id for this invocation; a server that rescues a job sends it again."""
    run_id = config.get("run_id") or (config.get("metadata") or {}).get("run_id")
    return f"langgraph:{run_id}" if run_id else f"once:{uuid4().hex}"
