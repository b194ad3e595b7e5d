"""What is said to a run that goes on: it pauses at a safe point, keeps what is finished, and plans the rest anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graph.gateway import Agent
from plans.decisions import Respond
from plans.errors import UsageError
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.nodes.model_server import ScriptedModel
from tests.running import running

PRICE = step("s1", "price", args={"item": "ball"})
SEND = step("s3", "send", "s1", args={"to": "ann", "text": "costs ${s1.price}"}, require_approval=True)
NEW = plan(step("n1", "double", args={"number": "${s1.price}"}), answer="${n1.number}")


class Slow(Shop):
    """A shop whose letters take a moment, and whose counter waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

        @self.kit.tool(effect="irreversible")
        async def ship(text: str) -> dict[str, str]:
            """Ship a parcel."""
            self.begun.set()
            await self.go_on.wait()
            self.take("ship", text)
            return {"shipped": text}


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it has not come to pass within twenty seconds")


async def said(agent: Agent, thread_id: str, *messages: str, **more: Any) -> dict[str, Any]:
    """What the graph gives a chat client that has sent these messages."""
    config: Any = {"configurable": {"thread_id": thread_id}}
    found: dict[str, Any] = await agent.graph.ainvoke(
        {"messages": [HumanMessage(text) for text in messages]}, config, **more
    )
    return found


async def test_a_run_that_is_driven_takes_it_at_the_next_safe_point(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """An effect that has begun ends and stays, nothing else of the old plan starts, and both callers get the result."""
    shop = Slow()
    agent = await agent_on([shop.kit], model=endpoint)
    ship = step("s2", "ship", args={"text": "a ball"})
    endpoint.answers(json.dumps(NEW))
    first = asyncio.create_task(
        agent.run(plan=plan(PRICE, ship, step("s4", "double", "s2", args={"number": 9})), thread_id="t")
    )
    await shop.begun.wait()
    second = asyncio.create_task(agent.run("double the price instead", thread_id="t", request_id="said-1"))
    await until(lambda: bool(endpoint.questions))
    shop.go_on.set()
    results = await asyncio.gather(first, second)
    assert [(each.status, each.answer) for each in results] == [("done", "8"), ("done", "8")]
    assert shop.calls == {"price": 1, "ship": 1, "double": 1}
    assert [each.id for each in results[0].steps] == ["s1", "s2", "n1"]
    assert "double the price instead" in endpoint.prompt()
    [revision] = results[0].revisions
    assert (revision.source, revision.why) == ("global_replan", "double the price instead")


async def test_it_reaches_a_worker_in_another_process_and_the_same_sending_counts_once(
    agent_on: OpenAgent, endpoint: ScriptedModel, database_url: str, tmp_path: Any
) -> None:
    """Another engine on the database says it; said again with the same request id, nothing is planned again."""
    shop = Slow()
    agent = await agent_on([shop.kit], model=endpoint)
    endpoint.answers(json.dumps(NEW))
    ship = step("s2", "ship", args={"text": "a ball"})
    first = asyncio.create_task(agent.run(plan=plan(PRICE, ship), thread_id="t"))
    await shop.begun.wait()
    async with running(database_url, tmp_path, [Slow().kit], model=endpoint) as other:
        waits = asyncio.create_task(other.run("double the price too", thread_id="t", request_id="said-1"))
        await until(lambda: bool(endpoint.questions))
        again = asyncio.create_task(other.run("double the price too", thread_id="t", request_id="said-1"))
        await asyncio.sleep(0.3)
        shop.go_on.set()
        results = await asyncio.gather(first, waits, again)
    assert [each.answer for each in results] == ["8", "8", "8"]
    assert (len(endpoint.questions), shop.calls) == (1, {"price": 1, "ship": 1, "double": 1})


async def test_it_is_stored_before_anything_is_done_about_it(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Whoever goes on with a run, a sweeper first of all, finds what was said while nobody drove it; a run that has
    ended takes nothing."""
    from checkpoints.instructions import Instruction

    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    waiting = await agent.run(plan=plan(PRICE, SEND), thread_id="t")
    word = Instruction(instruction_id="w", message="send nothing", said_by=agent.principal)
    assert await agent.engine.instructions.send(waiting.run_id, word)
    endpoint.answers(json.dumps(NEW))
    swept = await agent.sweeper.once()
    assert [(each.why, each.status) for each in swept.gone_on] == [("told", "done")]
    done = await agent.show("t")
    assert (done.status, done.answer, shop.calls) == ("done", "8", {"price": 1, "double": 1})
    assert [each.trigger for each in done.resumes] == ["instruction"]
    assert not await agent.engine.instructions.send(waiting.run_id, word)


async def test_without_a_model_only_an_answer_can_be_said(agent_on: OpenAgent) -> None:
    """A run that asks the user takes their words as the answer; any other says what it lacks, and goes on as it was."""
    shop = Shop()
    agent = await agent_on([shop.kit])
    asks = step("s1", "ask_user", args={"question": "Which item?"})
    await agent.run(plan=plan(asks, step("s2", "price", args={"item": "${s1.answer}"})), thread_id="t")
    done = await agent.run("cup", thread_id="t")
    assert (done.status, shop.given) == ("done", [("price", "cup")])
    await agent.run(plan=plan(PRICE, SEND), thread_id="u")
    with pytest.raises(UsageError, match="needs a model"):
        await agent.run("send nothing", thread_id="u")
    assert len(await agent.approvals("u")) == 1


async def test_a_chat_is_asked_and_answers_in_messages(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """Question, answer, plan and result all stand in the conversation, each once; words that are no answer to a choice
    are an instruction."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    colours = {"question": "Which colour?", "kind": "choice", "choices": ["red", "blue"]}
    endpoint.answers(
        json.dumps(plan(step("s1", "ask_user", args=colours))),
        json.dumps(plan(PRICE | {"id": "s2", "args": {"item": "${s1.answer}"}}, answer="it costs ${s2.price}")),
    )
    asked = await said(agent, "t", "what does a ball cost?")
    assert asked["status"] == "paused"
    assert asked["messages"][-1].text == "Which colour?\n- red\n- blue"
    done = await said(agent, "t", "Blue")
    assert (done["status"], shop.given) == ("done", [("price", "blue")])
    texts = [message.text for message in done["messages"]]
    assert texts == ["what does a ball cost?", "Which colour?\n- red\n- blue", "Blue", "it costs 4"]
    assert [isinstance(message, AIMessage) for message in done["messages"]] == [False, True, False, True]


async def test_a_plan_is_reviewed_in_a_chat(agent_on: OpenAgent, endpoint: ScriptedModel) -> None:
    """The message tells the steps; what is said next leads to another plan, which is shown again."""
    agent = await agent_on([Shop().kit], model=endpoint, review="first")
    endpoint.answers(
        json.dumps(plan({**PRICE, "title": "Look it up"})), json.dumps(plan({**PRICE, "title": "Ask about"}))
    )
    first = await said(agent, "t", "what does a ball cost?")
    assert "1. Look it up (price)" in first["messages"][-1].text
    second = await said(agent, "t", "please", "in other words")
    assert (second["status"], "1. Ask about (price)" in second["messages"][-1].text) == ("paused", True)
    assert r"what does a ball cost?\nplease\nin other words" in endpoint.prompt()
    [request] = await agent.approvals("t")
    assert request.kind == "review"


async def test_what_is_said_before_a_checkpoint_knows_of_the_run_is_said_to_it(
    agent_on: OpenAgent, endpoint: ScriptedModel
) -> None:
    """A chat client interrupts a server's run while its plan is still being made: the next message is no second run."""
    shop = Shop()
    agent = await agent_on([shop.kit], model=endpoint)
    endpoint.answers(json.dumps(plan(PRICE, answer="${s1.price}")))
    task = asyncio.create_task(said(agent, "t", "what does a ball cost?"))
    await until(lambda: bool(agent.engine.sessions))
    [run_id] = agent.engine.sessions
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await agent.engine.close_session(run_id)
    done = await said(agent, "t", "and say it in pence")
    assert (done["status"], done["answer"], len(await agent.runs())) == ("done", "4", 1)
    assert r"what does a ball cost?\nand say it in pence" in endpoint.prompt()


async def test_an_answer_that_is_given_twice_counts_once(agent_on: OpenAgent) -> None:
    """Once by its id and once in words: the second finds nothing to answer, and changes nothing."""
    agent = await agent_on([Shop().kit])
    asks = step("s1", "ask_user", args={"question": "Which item?"})
    waiting = await agent.run(
        plan=plan(asks, SEND | {"depends_on": ["s1"], "args": {"to": "a", "text": "${s1.answer}"}}), thread_id="t"
    )
    after = await agent.resume("t", decisions={waiting.approvals[0].approval_id: Respond("cup")})
    assert after.approvals[0].args["text"] == "cup"
    with pytest.raises(UsageError):
        await agent.run("ball", thread_id="t")
