"""Plans that real models wrote: what is wrong with them is said, what is right is taken, and nothing breaks."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.faults import errors_among
from plans.lint import build_plan, lint_reading
from plans.reader import read_plan
from tests.cases.shared import CASES, lines, needs
from tests.nodes.model_server import ScriptedModel, completion
from tests.plans.sample import Tool
from tests.plans.test_mutations import judged, mutated
from tests.running import running
from tools.registry import Toolkit

TASKBENCH = "model_plans/taskbench.jsonl"
RAW = "model_plans/raw/answers.jsonl"
pytestmark = needs(TASKBENCH)

CODE_OF = {
    "unknown_tool": "UNKNOWN_TOOL",
    "bad_edge": "UNKNOWN_DEPENDENCY",
    "cycle": "CYCLE",
    "empty_plan": "PLAN_EMPTY",
}

web = Toolkit("web")


@web.tool(effect="read")
def search_web(query: str) -> str:
    """Search."""
    return query


@web.tool(effect="read")
def fetch_page(url: str) -> str:
    """Fetch."""
    return url


@web.tool(effect="read")
def read_file(path: str) -> str:
    """Read."""
    return path


@web.tool(effect="read")
def calculator(expression: str) -> float:
    """Calculate."""
    return float(expression)


@web.tool(effect="irreversible", risk="high")
def send_email(to: str, subject: str, body: str) -> None:
    """Send."""


class Anything(Tool):
    """A tool that takes whatever it is given: these plans name no arguments."""

    def check_args(self, args: Any, references: Any = ()) -> list[tuple[str, str]]:
        return []


def known_tools() -> dict[str, dict[str, Anything]]:
    """The tools of each domain; none where the file is absent."""
    file = CASES / "model_plans" / "tools.json"
    domains = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {domain: {tool["name"]: Anything(tool["name"]) for tool in tools} for domain, tools in domains.items()}


TOOLS = known_tools()
SOME = lines(TASKBENCH)[::16] or [{}]


def by_name(case: dict[str, Any]) -> dict[str, Any]:
    """The plan in our form. A link goes between the first steps of the tools that it names; one end that is no step of
    the plan becomes a dependency on nothing."""
    steps: list[dict[str, Any]] = []
    first: dict[str, dict[str, Any]] = {}
    for number, node in enumerate(case["plan"]["task_nodes"]):
        steps.append({"id": f"s{number}", "tool": node["task"], "depends_on": []})
        first.setdefault(node["task"], steps[-1])
    for link in case["plan"]["task_links"]:
        source, target = (
            first.get(str(link[end]), {"id": "nowhere", "depends_on": []}) for end in ("source", "target")
        )
        here, there = (target, source) if target["id"] != "nowhere" else (source, target)
        here["depends_on"].append(there["id"])
        if here["id"] == "nowhere":
            steps[0]["depends_on"].append("nowhere")
    return {"goal": case["goal"], "steps": steps}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines(TASKBENCH)])
def test_every_flaw_of_a_real_plan_is_reported_and_nothing_else(case: dict[str, Any]) -> None:
    """The codes are exactly those of the flags; a repeated tool is no fault."""
    reading = read_plan(json.dumps(by_name(case)))
    found = {fault.code for fault in errors_among(lint_reading(reading, TOOLS[case["domain"]]))}
    assert found == {CODE_OF[flag] for flag in case["flags"] if flag != "repeated_tool"}


@given(st.data())
def test_a_real_plan_changed_anywhere_is_valid_or_reported(data: st.DataObject) -> None:
    """Whatever models write that is nearly a plan: never an exception."""
    case = data.draw(st.sampled_from(SOME))
    judged(json.dumps(data.draw(mutated(by_name(case)))), TOOLS[case["domain"]])


def broken_further(case: dict[str, Any]) -> dict[str, Any]:
    """The plan with a field too many in each step."""
    plan = by_name(case)
    for step in plan["steps"]:
        step["confidence"] = 0.9
    return plan


@pytest.mark.parametrize("flag", ["unknown_tool", "bad_edge", "cycle"])
def test_faults_of_form_hide_no_flaw_of_a_real_plan(flag: str) -> None:
    """Every flaw is reported beside a field that no step has."""
    flawed = [case for case in lines(TASKBENCH) if flag in case["flags"]]
    assert flawed
    for case in flawed:
        reading = read_plan(json.dumps(broken_further(case)))
        found = {fault.code for fault in errors_among(lint_reading(reading, TOOLS[case["domain"]]))}
        assert found >= {CODE_OF[flag], "SCHEMA_INVALID"}, case["id"]


def adapted(text: str) -> str:
    """An answer in our form, mechanically: these models were asked for other references, for arguments as pairs, and
    for no goal."""
    plan = json.loads(re.sub(r"^```json\n|\n```$", "", text.strip()))
    for step in plan["steps"]:
        if isinstance(step["args"], list):
            step["args"] = {pair["name"]: pair["value"] for pair in step["args"]}
    return re.sub(r"\{\{(\w+)\}\}", r"${\1}", json.dumps({"goal": "g", **plan}))


def forms(text: str) -> list[str]:
    """An answer as it is and, where that can be had mechanically, in our form."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return [text, adapted(text)]
    return [text]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines(RAW)])
def test_no_real_answer_breaks_anything_or_sends_an_email_unasked(case: dict[str, Any]) -> None:
    """As it is, and put into our form, each answer is a plan or refused for a reason; an e-mail is always of high
    risk, which means that a person is asked."""
    for text in forms(case["content"]):
        reading = read_plan(text, case["finish_reason"])
        errors = errors_among(lint_reading(reading, web.tools))
        assert (reading.draft is None) <= bool(errors)
        assert all(fault.message and (fault.path or fault.code.startswith("PLAN_")) for fault in errors)
        if reading.draft is not None and not errors:
            plan = build_plan(reading.draft, web.tools, plan_id="p", revision=1, source="model")
            assert {step.risk for step in plan.steps if step.tool == "send_email"} <= {"high"}


def test_some_of_the_real_answers_are_plans() -> None:
    """Strictness does not refuse everything: in our form a good part of the finished answers can run."""
    accepted = 0
    for case in lines(RAW):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            reading = read_plan(adapted(case["content"]), case["finish_reason"])
            accepted += not errors_among(lint_reading(reading, web.tools))
    assert accepted >= 15


class Office:
    """The five tools of the raw answers, in a world where something can be looked at; `sent` are the e-mails."""

    def __init__(self) -> None:
        self.kit = Toolkit("office")
        self.sent: list[str] = []
        for name, takes in (("search_web", "query"), ("fetch_page", "url"), ("read_file", "path")):
            self.kit.add(self._says, name=name, description=name, effect="read", args_schema=_texts(takes))
        schema = _texts("expression")
        self.kit.add(lambda expression: 4.0, name="calculator", description="c", effect="read", args_schema=schema)
        schema = _texts("to", "subject", "body")
        self.kit.add(self._send, name="send_email", description="s", effect="irreversible", args_schema=schema)

    async def _says(self, **asked: str) -> str:
        return f"what there is about {asked}"

    async def _send(self, to: str, subject: str, body: str) -> None:
        self.sent.append(f"{to}: {subject}: {body}")


def _texts(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


async def test_whatever_a_real_model_answers_no_email_is_sent_unasked(
    database_url: str, tmp_path: Path, endpoint: ScriptedModel
) -> None:
    """Each answer, in our form where that can be had, is what a planner says over HTTP to its own goal, again and
    again: the run ends done, asks a person before it sends anything (its tool says nothing of a risk), before it
    fetches an address that another result has given, or about a plan that cannot be used, or says honestly why it
    cannot; and nothing is ever sent."""
    office, ends, asked = Office(), Counter[str](), Counter[str]()
    async with running(database_url, tmp_path, [office.kit], model=endpoint, durability="exit") as agent:
        for case in lines(RAW):
            endpoint.answers(completion(forms(case["content"])[-1], finish_reason=case["finish_reason"]))
            result = await agent.run(case["goal"])
            ends[result.status] += 1
            assert result.answer or result.approvals, (case["id"], result)
            about = {approval.kind: approval.tool for approval in result.approvals}
            assert about in ({}, {"risk": "send_email"}, {"risk": "fetch_page"}, {"question": "plan"}), case["id"]
            asked.update(list(about))
            assert office.sent == [], case["id"]
    assert set(ends) <= {"done", "paused", "failed"}, ends
    assert asked.total() == ends["paused"]
    assert asked["risk"] > 5
    assert ends["done"] > 5
    assert ends["failed"] + asked["question"] > 5
