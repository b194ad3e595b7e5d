"""The model and the person of the simulated world: what they answer is the seed's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodes.model_settings import ModelSettings
from nodes.models import ModelAnswer
from plans.decisions import Approve, Decision, Edit, Reject, Respond

if TYPE_CHECKING:
    from nodes.prompts import Rendered
    from plans.values import JSON
    from tests.simulation.world import World

INSTEAD = {"look": "glance", "glance": "look", "scan": "look", "tally": "tally", "book": "send", "send": "book"}


class ScriptedModel:
    """Plans, repairs and judges after a while; now and then what it says is no use."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.settings = ModelSettings("scripted")
        self.busy = 0

    async def aclose(self) -> None:
        """Nothing is open."""

    async def ask(
        self,
        prompt: Rendered,
        *,
        schema: Mapping[str, JSON] | None = None,
        max_tokens: int | None = None,
    ) -> ModelAnswer:
        """An answer by what is asked, and by how often this was asked before."""
        world = self._world
        number = world.asked(prompt.task)
        draw = world.plot.chance("model", prompt.task, number)
        world.say(f"{world.process().name}: the model is asked: {prompt.rules[:20]}")
        self.busy += 1
        try:
            await asyncio.sleep(draw.choice((0.01, 0.3, 2.0)))
        finally:
            self.busy -= 1
        text = self._text(prompt, bad=draw.random() < world.plot.manners.bad_plans)
        world.answered(text)
        return ModelAnswer(
            text=text,
            finish_reason="stop",
            refusal=None,
            prompt_tokens=10,
            completion_tokens=10,
            model="scripted",
            elapsed_s=0.0,
        )

    def _text(self, prompt: Rendered, *, bad: bool) -> str:
        number = self._world.nonces = self._world.nonces + 1
        if prompt.rules.startswith("You carry out"):
            return f"judgement {number}"
        if bad:
            return f"I would rather not ({number})."
        if prompt.rules.startswith("You repair"):
            steps = [_repaired(json.loads(_between("failed_step", prompt.task)), number)]
        else:
            steps = self._planned_anew(prompt.task, number)
        return json.dumps({"goal": f"a seed, {number}", "steps": steps})

    def _planned_anew(self, task: str, number: int) -> list[dict[str, Any]]:
        """What is not finished, again; the step that failed under a new name, and those that read it changed."""
        finished = {step["id"] for step in json.loads(_between("finished", task) or "[]")}
        failed = json.loads(_between("failure", task) or "{}").get("step") or ""
        failed = failed.partition("[")[0]
        left = [step for step in self._world.steps_now() if step["id"] not in finished]
        fresh = f"r{number}"
        again = []
        for step in left:
            renamed = json.loads(_renamed(json.dumps(step), failed, fresh)) if failed else step
            again.append(_repaired(renamed, number) if renamed["id"] == fresh else renamed)
        return again or [{"id": fresh, "tool": "look", "args": {"given": number}, "reason": "instead"}]


def _repaired(step: dict[str, Any], number: int) -> dict[str, Any]:
    """The step with another tool, or at least with other arguments."""
    kept = {name: value for name, value in step.items() if value not in (None, [], {}, False, "")}
    tool = INSTEAD.get(str(step.get("tool")), step.get("tool"))
    if tool is None:
        return {**kept, "instruction": f"{step['instruction']}, again ({number})"}
    args = dict(step.get("args") or {})
    if "by" in args:
        args["by"] = f"{args['by']} again {number}"
    elif tool == step.get("tool"):
        args["given"] = {"again": number, "was": args.get("given")}
    return {**kept, "tool": tool, "args": args}


def _renamed(text: str, old: str, new: str) -> str:
    """A step's JSON with one step's name replaced wherever it is that name."""
    text = re.sub(rf"(\$\{{){old}(?=[}}.\[])", rf"\g<1>{new}", text)
    return text.replace(f'"{old}"', f'"{new}"')


def _between(tag: str, text: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def decision(world: World, request: Mapping[str, Any]) -> Decision:
    """What the person says. About an effect in doubt it is the truth, which only they can look up."""
    draw, manners = world.plot.chance("person", request["approval_id"]), world.plot.manners
    if request["kind"] == "unknown_outcome":
        return _truth(world, request, skips=draw.random() < manners.rejected)
    said = draw.random()
    if said < manners.rejected:
        return Reject(message="no")
    if request["kind"] == "question":
        return Respond("do what is left in another way")
    if said < manners.rejected + manners.edited and "[" not in request["step_id"] and "by" in request["args"]:
        return Edit(args={**request["args"], "by": f"{request['args']['by']} edited"})
    return Approve()


def _truth(world: World, request: Mapping[str, Any], *, skips: bool) -> Decision:
    if skips:
        return Reject(message="leave it")
    key = world.key_in_doubt(request["run_id"], request["step_id"])
    value = world.truth(key)
    return Approve() if value is None else Respond(json.dumps(value))
