"""Where questions, policies, crashes, secrets and what people are shown meet."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from checkpoints import crash_points
from checkpoints.instructions import Instruction
from plans.decisions import Edit
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.graph.test_policy import ANN, ANYBODY, BOB, SEND, TEAM, asked, file, write
from tests.graph.test_secrets import stored
from tests.nodes.model_server import ScriptedModel
from tests.running import running
from tools.registry import Toolkit

__all__ = ["file"]
SECRET = "9q-terces-neddih"[::-1]


class Killed(BaseException):
    """As if the process had died here."""


def dies(at: str) -> None:
    """The moment after a question was stored."""
    if at == "approval.recorded":
        crash_points.hook = None
        raise Killed


async def test_a_question_counts_on_the_terms_on_which_it_was_stored(
    agent_on: OpenAgent, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked of anybody, then the process dies before its journal knows, and the policy wants two: one person's yes to
    the question as they saw it is not the yes of two."""
    shop = Shop()
    agent = await agent_on([shop.kit], policy=write(file, ANYBODY))
    monkeypatch.setattr(crash_points, "hook", dies)
    with pytest.raises(Killed):
        await agent.run(plan=plan(SEND), thread_id="t")
    write(file, {**TEAM, "needed": 2})
    assert (await agent.resume("t")).status == "paused"
    await asked(agent, by=[ANN])
    assert (await agent.resume("t")).status == "paused"
    assert shop.calls["send"] == 0
    assert (await asked(agent, by=[ANN, BOB])).needed == 2
    assert (await agent.resume("t")).status == "done"
    assert shop.calls["send"] == 1


class Crm:
    """A toolkit that notes what it was given."""

    def __init__(self) -> None:
        self.kit = Toolkit("crm")
        self.given: list[tuple[str, str]] = []

        @self.kit.tool(effect="idempotent", risk="high")
        async def change(user: str, password: str) -> str:
            """Change a password."""
            self.given.append((user, password))
            return "changed"


CHANGE = plan(step("s1", "change", args={"user": "ann", "password": "${inputs.new}"}))


@pytest.mark.parametrize("same_key", [True, False])
async def test_a_sealed_argument_outlives_an_edit_beside_it(database_url: str, tmp_path: Path, same_key: bool) -> None:
    """Somebody changes another argument of the call, in another process, with its key or without: the secret is the
    one that was given, or the tool is not called; a fork asks with the same one."""
    crm, keys = Crm(), ("k" * 20, "k" * 20 if same_key else "another key of somebody")
    async with running(database_url, tmp_path, [crm.kit], sealing_key=keys[0]) as agent:
        paused = await agent.run(plan=CHANGE, inputs={"new": SecretStr(SECRET)}, thread_id="t")
        [request] = paused.approvals
    async with running(database_url, tmp_path, [crm.kit], sealing_key=keys[1]) as agent:
        edit = Edit(args={**request.args, "user": "bob"})
        ended = await agent.resume("t", decisions={request.approval_id: edit})
        assert (ended.status, crm.given) == (("done", [("bob", SECRET)]) if same_key else ("failed", []))
        forked = await agent.fork("t", "s1", new_thread_id="u")
        assert forked.status == "paused"
        [again] = forked.approvals
        assert again.args["password"].startswith("[sealed:")
        ended = await agent.resume("u", decisions={again.approval_id: Edit(args={**again.args, "user": "eve"})})
        assert crm.given[1:] == ([("eve", SECRET)] if same_key else [])
    assert not any(SECRET in text or SECRET.encode().hex() in text for text in stored(database_url).values())


async def test_a_no_to_a_question_that_a_replan_takes_back_stays_a_no(
    agent_on: OpenAgent, endpoint: ScriptedModel, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody says no while the plan is written anew, and its new revision is stored a moment before the old question
    is taken back: the same call under another id is rejected, and not asked once more."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    waiting = await agent.run(plan=plan({**SEND, "require_approval": True}), thread_id="t")

    def says_no(at: str) -> None:
        if at == "plan.queued":
            crash_points.hook = None
            with psycopg.connect(database_url) as connection:
                connection.execute(
                    "UPDATE surestep.approvals SET status = 'rejected', decision = '{\"type\": \"reject\"}', "
                    "decided_by = 'ann', decided_at = clock_timestamp()"
                )

    word = Instruction(instruction_id="w", message="do it in another order", said_by=agent.principal)
    assert await agent.engine.instructions.send(waiting.run_id, word)
    monkeypatch.setattr(crash_points, "hook", says_no)
    endpoint.answers(json.dumps(plan({**SEND, "id": "n1"})))
    ended = await agent.resume("t")
    assert crash_points.hook is None
    assert (ended.status, shop.calls["send"], ended.approvals) == ("failed", 0, ())
    assert ended.steps[0].failure is not None
    assert ended.steps[0].failure.code == "REJECTED"
