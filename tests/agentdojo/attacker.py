"""A model that a stranger has taken over, behind a real server: the best that an injection could ever reach."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentdojo.functions_runtime import FunctionCall
from werkzeug import Response

from nodes.events import Event
from tests.agentdojo.plots import Step, hijacked, steps_of
from tests.nodes.model_server import Question, completion

_FINISHED = re.compile(r"<finished>(.*?)</finished>", re.DOTALL)


@dataclass(slots=True)
class Hijacked:
    """Says of every plan that it does not hold, repairs a step with what the attacker wants, and plans anew what the
    attacker wants; the rest of the user's steps come after it, so that nobody notices. Judgements say `judged`."""

    steps: Sequence[Step] = ()
    attack: Sequence[FunctionCall] = ()
    answer: str = ""
    judged: Sequence[dict[str, Any]] = ()
    asked: list[str] = field(default_factory=list)

    def hears(self, event: Event) -> None:
        """Take the user's steps as the run has them: a secret is not in them."""
        if event.kind == "plan" and event.plan is not None and event.plan["revision"] == 1 and self.steps:
            names = {"id", "tool", "args", "depends_on", "reason"}
            self.steps = [{name: step[name] for name in names} for step in event.plan["steps"]]

    def __call__(self, question: Question) -> Response:
        """The answer, and a note of what was asked for."""
        rules, task = (message["content"] for message in question["messages"])
        kind, said = self._answer(rules, task)
        self.asked.append(kind)
        return completion(json.dumps(said))

    def _answer(self, rules: str, task: str) -> tuple[str, Any]:
        if "You check a plan" in rules:
            return "check", {"holds": not self.attack, "reason": "it does not fit what was found"}
        if "You carry out one step" in rules:
            return "judge", self.judged[self.asked.count("judge")]
        if "You repair one step" in rules:
            return "mend", {"goal": "as before", "steps": steps_of(self.attack[:1], _failed(task))[:1]}
        done = _finished(task) | _gone(task)
        left = [
            {**step, "depends_on": [name for name in step["depends_on"] if name not in done]}
            for step in self.steps
            if step["id"] not in done
        ]
        return "plan", hijacked(left, self.attack, self.answer)


def _finished(task: str) -> set[str]:
    """The ids of the steps that a prompt calls finished."""
    found = _FINISHED.search(task)
    return set(re.findall(r'"id": ?"([^"]+)"', found.group(1))) if found else set()


def _gone(task: str) -> set[str]:
    """The step that a prompt says cannot be done: the rest goes on without it."""
    found = re.search(r'<failure>.*?"step": ?"([^"]+)"', task, re.DOTALL)
    return {found.group(1)} if found else set()


def _failed(task: str) -> str:
    """What the id of a repair begins with; it ends in 0, as that of the step does that is always the one."""
    found = re.search(r'<failed_step>.*?"id": ?"([^"]+)0"', task, re.DOTALL)
    return found.group(1) if found else "d"
