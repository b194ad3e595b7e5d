"""Every text that the library and the graph take is tried with text that is meant for something else."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graph.gateway import Agent
from plans.decisions import Approve
from plans.errors import SurestepError
from tests.graph.conftest import OpenAgent
from tests.graph.kits import Shop, plan, step
from tests.probes.strings import WORST
from tests.probes.witness import rows_of, watched

CANARY = "what only its owner reads"
THEIRS = "what is theirs"
ASKS = plan(step("s1", "send", args={"to": "a", "text": "b"}, require_approval=True))
GIVEN: dict[str, Any] = {
    "thread_id": "mine", "step_id": "s1", "from_step": "s1", "decision": Approve(), "output_ref": "sha256-0",
    "text": "{}", "principal": None, "tool": "double", "candidate": "double", "name": "anomalous_orders", "run": "mine",
    "changes": {"timeout_s": 3},
}  # fmt: skip
"""What is given for a parameter that has to be there while another one is probed."""


def texts(kind: type) -> Iterator[tuple[str, str]]:
    """Every parameter of every public method that takes a text, so that a new method is probed too."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            for parameter in inspect.signature(method).parameters.values():
                if {"str", "Any"} & set(
                    str(parameter.annotation).split(" | ")
                ) and parameter.kind is not parameter.VAR_KEYWORD:
                    yield name, parameter.name


@pytest.fixture
async def agent(agent_on: OpenAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent beside somebody else's run, in a folder with one file for clients and a link to one that is not."""
    (tmp_path / "canary").write_text(CANARY)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "canary")
    monkeypatch.chdir(root)
    agent: Agent = await agent_on([Shop().kit], input_root=root)
    theirs = plan(step("s1", "send", args={"to": "a", "text": THEIRS}, require_approval=True))
    for thread, asks in (("theirs", theirs), ("mine", ASKS)):
        assert (await agent.run(plan=asks, thread_id=thread)).status == "paused"
    assert THEIRS in str(await agent.approvals("theirs"))
    return agent


async def tried(work: Callable[[], Awaitable[object]]) -> list[str]:
    """What is wrong with how a call ended: nothing where it was taken, or refused in a sentence of ours."""
    try:
        given = await work()
    except SurestepError:
        return []
    except Exception as error:  # noqa: BLE001  # what is looked for
        return [f"{type(error).__name__}: {error}"]
    return [f"shows {given!r:.300}"] if THEIRS in repr(given) else []


async def test_no_text_that_the_library_takes_is_anything_but_a_text(
    agent: Agent, database_url: str, tmp_path: Path
) -> None:
    """Every method, every text, every probe: done or refused in a sentence, and nothing else is touched or read."""
    before, wrong = rows_of(database_url, "theirs"), list[str]()
    for owner in (agent, agent.tools, agent.templates):
        for method, name in texts(type(owner)):
            required = _required(getattr(owner, method), name)
            for value in WORST:
                called = partial(_called, getattr(owner, method), {**required, name: value})
                with watched() as witness:
                    told = await tried(called)
                wrong += [f"{method}({name}={value!r:.60}) {seen}" for seen in (*told, *_seen(witness, tmp_path))]
    assert wrong == []
    assert rows_of(database_url, "theirs") == before


def _required(method: Any, probed: str) -> dict[str, Any]:
    given = inspect.signature(method).parameters.values()
    return {each.name: GIVEN[each.name] for each in given if each.default is each.empty and each.name != probed}


async def _called(method: Any, given: dict[str, Any]) -> object:
    parameters = inspect.signature(method).parameters
    several = next((each.name for each in parameters.values() if each.kind is each.VAR_KEYWORD), None)
    more = given.pop(several, {}) if several else {}
    said = method(**given, **more)
    return await said if inspect.isawaitable(said) else said


def _seen(witness: Any, tmp_path: Path) -> list[str]:
    canary = (tmp_path / "canary").resolve()
    outside = {path for path in witness.outside(tmp_path, Path("/dev/null")) if "__pycache__" not in path.parts}
    found = [f"wrote {sorted(map(str, outside))}"] if outside else []
    found += ["opened the canary"] if canary in witness.read | witness.written else []
    return found + [f"reached {each}" for each in witness.reached]


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "the goal": lambda text: {"goal": text},
    "a message": lambda text: {"messages": [HumanMessage(text)]},
    "a message's id": lambda text: {"messages": [HumanMessage("hello", id=text)]},
    "the request": lambda text: {"plan": ASKS, "request_id": text},
    "a file": lambda text: {"plan": ASKS, "inputs": {"x": {"file": text}}},
    "an input's name": lambda text: {"plan": ASKS, "inputs": {text: 1}},
    "an input": lambda text: {"plan": ASKS, "inputs": {"x": text, "y": {"untrusted": text}, "z": {"secret": text}}},
    "a plan's goal": lambda text: {"plan": {**ASKS, "goal": text}},
    "a step's id": lambda text: {"plan": plan(step(text, "double", args={"number": 1}))},
    "a step's tool": lambda text: {"plan": plan(step("s1", text))},
    "a step's argument": lambda text: {"plan": plan(step("s1", "price", args={"item": text}))},
    "a field of a plan": lambda text: {"plan": {**ASKS, text: 1}},
}


async def test_no_text_that_a_client_sends_is_anything_but_a_text(
    agent: Agent, database_url: str, tmp_path: Path
) -> None:
    """The graph as a server has it: what a client writes into any field of its input stays a value."""
    before, wrong = rows_of(database_url, "theirs"), list[str]()
    for number, (place, value) in enumerate(product(PLACES, WORST)):
        config: Any = {"configurable": {"thread_id": f"client-{number}"}}
        given: Any = PLACES[place](value)
        with watched() as witness:
            told = await tried(lambda given=given, config=config: agent.graph.ainvoke(given, config))  # type: ignore[misc]  # a lambda has no types
        wrong += [f"{place} {value!r:.60} {seen}" for seen in (*told, *_seen(witness, tmp_path))]
    assert wrong == []
    assert rows_of(database_url, "theirs") == before
