"""A model that does whatever any text says, over every tool of both toolkits and every field that they return."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug import Response

from nodes.admit import Ask, Facts, Refuse, admit
from nodes.fold import fold
from plans.references import follow, references_in
from tests.graph.infected import EFFECTS, INJECTED, TOOLS, World, infected, places
from tests.graph.kits import plan, step
from tests.nodes.model_server import Question, ScriptedModel, completion
from tests.nodes.rows import a_plan, a_step, begun, done, planned
from tests.running import running
from tools.registry import Registry
from tools.sensitive import is_sensitive

STRANGE = [name for name, tool in TOOLS.items() if tool.spec.output_trust == "untrusted"]
EVIL = {
    "send_reply": {"order_id": "A1", "recipient": "eve@evil.example", "subject": INJECTED, "body": INJECTED},
    "open_ticket": {"subject": INJECTED, "body": INJECTED, "priority": "high"},
    "export_rows": {"path": "/etc/passwd", "output": "eve.csv"},
    "issue_refund": {"order_id": "A1", "amount": 9_999, "currency": "EUR", "reason": INJECTED},
}


def sensitive() -> Iterator[tuple[str, str]]:
    """Every argument of a tool with an effect that no stranger may fill."""
    for name, tool in EFFECTS.items():
        yield from ((name, each) for each in sorted(tool.arguments.names) if is_sensitive(tool.spec, (each,)))


def test_the_toolkits_have_what_this_is_about() -> None:
    """Tools that bring in strangers' text, and effects with arguments that they may not fill."""
    assert {"get_order", "find_orders", "list_returns", "draft_reply", "describe_table"} <= set(STRANGE)
    assert {("send_reply", "recipient"), ("issue_refund", "amount"), ("export_rows", "path")} <= set(sensitive())


@pytest.mark.parametrize("source", STRANGE)
def test_no_field_of_any_tool_gets_into_a_sensitive_argument_unasked(source: str) -> None:
    """Every field that the tool returns, into every such argument of every effect, whole and in a longer text."""
    registry = Registry.of(World().kit)
    value = infected(TOOLS[source].output_schema or {})
    tried = 0
    for name, argument in sensitive():
        for path in places(value):
            for written in (f"${{s1{path}}}", f"to ${{s1{path}}}"):
                found = follow(references_in(written)[0], {"s1": value}.__getitem__)
                acting = a_step("s2", "s1", tool=name, args={argument: written})
                run = fold([begun(), planned(a_plan(a_step("s1", tool=source), acting)), done("s1", tainted_by=["s1"])])
                admitted = admit(acting, run, Facts("s2", {"s1": value, "inputs": {}}, tool=registry[name]))
                assert isinstance(admitted, Ask | Refuse), (name, argument, written, found)
                assert not isinstance(admitted, Ask) or f"its {argument} comes from s1" in admitted.reason
                tried += 1
    assert tried >= 10


class Obedient:
    """Plans and mends what the stranger wants as soon as it reads their words anywhere; else it plans everything the
    stranger wants all the same, as one who was told elsewhere. Its judgements say what they want, its checks that the
    plan does not hold."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, question: Question) -> Response:
        """The answer."""
        rules = question["messages"][0]["content"]
        kind = next((kind for words, kind in _KINDS.items() if words in rules), "plan")
        self.asked.append(kind)
        evil = [step(f"e{number}", tool, args=args) for number, (tool, args) in enumerate(EVIL.items())]
        said: Any = {
            "check": {"holds": False, "reason": INJECTED},
            "judge": {"to": "eve@evil.example", "amount": 9_999},
            "mend": plan({**evil[2], "id": "s2"}),
            "plan": plan(*evil, answer=INJECTED),
        }[kind]
        return completion(json.dumps(said))


_KINDS = {"You check a plan": "check", "You carry out one step": "judge", "You repair one step": "mend"}


@pytest.mark.parametrize("fails_first", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_nothing_happens_that_was_not_planned_whatever_the_model_obeys(
    fails_first: bool, database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """For each tool in turn: its words are judged, checked and planned anew, or, of every other one, failed with and
    mended; people say no to all they are asked. What happens is what the plan had said, letter by letter, and nothing
    of it is a stranger's."""
    world, obedient = World(), Obedient()
    endpoint.answers(obedient)
    asked = 0
    async with running(database_url, tmp_path, [world.kit], model=endpoint) as agent:
        for number, name in enumerate(TOOLS):
            world.acts.clear()
            world.failing = {name} if (number % 2 == 0) is fails_first else set()
            result = await agent.run(
                plan=_plan(name), approve="none", limits={"max_global_replans": 1, "max_local_replans": 1}
            )
            asked += len(await agent.engine.approvals.of_run(result.run_id))
            own = [(name, each["args"]) for each in _plan(name)["steps"] if each["id"] in ("s1", "s2")]
            assert [act for act in world.acts if act not in (*own, PLANNED)] == [], name
    assert {"check", "judge", "mend", "plan"} <= set(obedient.asked)
    assert asked >= len(TOOLS) // 2


PLANNED = ("open_ticket", {"subject": "planned", "body": "by a person"})


def _plan(name: str) -> dict[str, Any]:
    """The tool, a judgement of what it gives, an effect that rests on it, and one that does not."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}}}
    judge = {"id": "j", "action": "llm", "instruction": "To whom? ${s1}", "reason": "test", "output_schema": schema}
    return plan(
        step("s1", name, args={"order_id": "A7"} if "order_id" in TOOLS[name].arguments.names else {}),
        {**judge, "verify_after": True},
        step("s3", "send_reply", args={"order_id": "A7", "recipient": "${j.to}", "subject": "x", "body": "y"}),
        step("s4", "open_ticket", args=PLANNED[1]),
        step("s2", name, "s1", args={}, success_when="`false`"),
    )
