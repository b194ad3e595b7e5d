"""How a node is entered, whoever resumes it: session first; and what it wrote is durable before it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime

from checkpoints.crash_points import reached
from nodes.acting import check_tenant, known_principal, principal_of
from nodes.approve import approve, ask
from nodes.archived import Archived, stored_answer
from nodes.beginning import begun
from nodes.clean_errors import clean_errors
from nodes.engine import Engine
from nodes.inbox import entry, taken
from nodes.resuming import note_resumption
from nodes.sealing import hidden_messages
from nodes.session import Session
from nodes.state import AgentState, Context, Planning, RunHead
from nodes.versions import readable_state
from plans.errors import SurestepError
from plans.limits import Limits

EngineSource = Callable[[], Awaitable[Engine]]
Node = Callable[[AgentState, Session], Awaitable[dict[str, Any]]]


class Entered(Protocol):
    """A node as LangGraph calls it."""

    __name__: str

    def __call__(self, state: AgentState, *, runtime: Runtime[Context]) -> Awaitable[dict[str, Any]]:
        """What of the state changes."""
        ...


def in_session(node: Node, engines: EngineSource) -> Entered:
    """The node as LangGraph calls it. A node that raises ends the drive: nothing of the run goes on unowned."""

    async def run(state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]:
        with clean_errors():
            return await _entered(node, cast("AgentState", readable_state(state)), await engines(), runtime)

    run.__name__ = node.__name__
    return run


async def _entered(node: Node, state: AgentState, engine: Engine, runtime: Runtime[Context]) -> dict[str, Any]:
    try:
        session = await _session(engine, state, get_config(), runtime)
    except Archived as found:
        update = await stored_answer(node.__name__, state, found.stone, engine.archives)
        hidden = hidden_messages(engine, state)
        return {**_fresh(state, update["run"], hidden), **update} if "run" in update else update
    is_new = entry(state) == "new_goal"
    fresh: dict[str, Any] = _fresh(state, session.head, hidden_messages(engine, state)) if is_new else {}
    seen = cast("AgentState", {**state, **fresh})
    return await _driven(engine, session, lambda: node(seen, session), seen, fresh, last=node.__name__ == "finish")


def asking(engines: EngineSource) -> Entered:
    """`approve` as LangGraph calls it: the interrupt comes first, before anything is opened."""

    async def run(state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]:
        state = cast("AgentState", readable_state(state))
        answer = ask(state)
        with clean_errors():
            engine = await engines()
            session = await _session(engine, state, get_config(), runtime)
            return await _driven(engine, session, lambda: approve(state, session, answer), state, {})

    run.__name__ = "approve"
    return run


async def _driven(
    engine: Engine,
    session: Session,
    work: Callable[[], Awaitable[dict[str, Any]]],
    state: AgentState,
    fresh: Mapping[str, Any],
    *,
    last: bool = False,
) -> dict[str, Any]:
    """Do the node's work, and see to the session. It lives from a drive's first node to its last: checkpoints between
    them are saved under its fence."""
    run_id = session.head_run_id
    try:
        with engine.attendance.of(run_id):
            if not last:  # entered again after it has decided, `finish` says the same
                await note_resumption(session, state)
                await _reopen(session, engine.limits.pop(run_id, None))
            update = {**fresh, **await work()}
            update |= session.snapshot(state)
            await session.flush()
        reached("node.flushed")
    except BaseException:
        with suppress(SurestepError):  # what went wrong first is what is told
            await engine.close_session(run_id)
        raise
    if last or update.get("edge") == "human_interrupt":
        await engine.close_session(run_id)
    return update


async def _session(engine: Engine, state: AgentState, config: RunnableConfig, runtime: Runtime[Context]) -> Session:
    head, came = state.get("run"), entry(state)
    if came == "new_goal" or head is None:
        session = await begun(engine, state, config, runtime.context, principal_of(engine, config))
    elif came == "instruction":
        who = principal_of(engine, config)
        await check_tenant(engine, head.run_id, who)
        session = await engine.session(head.run_id)
        who.acting_in(session.head.role)  # its word is acted on in that role
    else:  # also by nobody, such as a server's own timer: what goes on then was begun and decided by somebody
        if (known := known_principal(engine, config)) is not None:
            await check_tenant(engine, head.run_id, known)
        session = await engine.session(head.run_id)
    session.heard_by(runtime.stream_writer, config)
    return session


async def _reopen(session: Session, limits: Limits | None) -> None:
    """A run that stopped at a limit goes on; the caller may have raised it."""
    finished = session.fold.finished
    if limits is not None or (finished is not None and finished["status"] == "limited"):
        await session.record("reopened", body={"limits": limits.model_dump() if limits else None})


def _fresh(state: AgentState, head: RunHead, hidden: Mapping[str, Any]) -> dict[str, Any]:
    """The channels of a new run: nothing of the thread's earlier run is left in them. `hidden` are its messages that
    held a secret."""
    return {
        **taken(state),
        **hidden,
        "run": head,
        "edge": "new_goal",
        "status": "running",
        "answer": None,
        "failures": [],
        "report_ref": None,
        "missing": None,
        "current_plan": None,
        "planning": Planning(),
        "drafted": None,
        "faults": [],
        "verdicts": [],
        "approvals": [],
        "refused": [],
        "counts": {},
    }
