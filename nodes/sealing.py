"""Secrets out of what people and clients give: goals, inputs, plans, answers. What comes in here is stored and shown
with placeholders in their place from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from nodes.requests import run_record
from plans.decisions import ApprovalRequest, Decision, Edit, Reject, Respond
from plans.placeholders import Kept, placeholders_in
from plans.plan import PlanDraft, StepDraft
from plans.values import JSON
from tools.vault import OF_INPUTS, Vault

if TYPE_CHECKING:
    from checkpoints.runs import RunRecord
    from nodes.engine import Engine
    from nodes.session import Session
    from nodes.state import RunHead
    from tools.registry import Registry


class Sealing:
    """What is found in one request, by placeholder, until its run has an id under which it can be stored."""

    def __init__(self, vault: Vault, registry: Registry) -> None:
        self._vault = vault
        self._registry = registry
        self.kept: dict[str, Kept] = {}

    @classmethod
    def of(cls, engine: Engine) -> Sealing:
        """That of an engine."""
        if engine.ports.vault is None:
            raise AssertionError("an engine is opened with a vault")
        return cls(engine.ports.vault, engine.registry)

    async def keep(self, run_id: str) -> None:
        """Store what was found for a run; durable when this returns."""
        if self.kept:
            await self._vault.store.keep(run_id, self.kept)

    async def forget(self, run_id: str) -> None:
        """Delete it again: the run never came to be."""
        if self.kept:
            await self._vault.store.forget(run_id)

    def inputs(self, values: Mapping[str, Any]) -> dict[str, JSON]:
        """A run's inputs without secrets: those that are given as such, and what looks like a credential."""
        told = {name: _said(value) for name, value in values.items()}
        given = {name: self.named(OF_INPUTS + name, said) for name, said in told.items() if said is not None}
        hidden: dict[str, JSON] = self.hidden({name: value for name, value in values.items() if name not in given})
        return {**hidden, **given}

    def hidden(self, value: JSON) -> JSON:
        """A value without what looks like a credential."""
        shown, kept = self._vault.hide(value)
        self.kept |= kept
        return shown

    def text(self, text: str) -> str:
        """The same of a text."""
        return str(self.hidden(text))

    def named(self, name: str, secret: str) -> str:
        """What stands for a secret that somebody has named as one."""
        shown, kept = self._vault.hide_as(name, secret)
        self.kept |= kept
        return shown

    def args(self, tool_name: str | None, args: Mapping[str, JSON]) -> dict[str, JSON]:
        """Arguments without what their tool keeps secret, and without what looks like a credential."""
        tool = self._registry.get(tool_name or "")
        secret = tool.secret_args if tool is not None else frozenset()
        literal = {name for name in secret & args.keys() if is_literal(args[name])}
        named = {name: self.named(name, item) if name in literal else item for name, item in args.items()}
        hidden: dict[str, JSON] = self.hidden(named)
        return hidden

    def draft(self, draft: PlanDraft) -> PlanDraft:
        """A plan without secrets in its arguments and its words."""
        words = self.hidden({"goal": draft.goal, "answer": draft.answer})
        return draft.model_copy(update={**words, "steps": tuple(self._step(step) for step in draft.steps)})

    def _step(self, step: StepDraft) -> StepDraft:
        words = self.hidden({"title": step.title, "instruction": step.instruction, "reason": step.reason})
        return step.model_copy(update={**words, "args": self.args(step.tool, step.args)})

    def decision(self, tool_name: str, decision: Decision) -> Decision:
        """A person's answer without secrets."""
        match decision:
            case Edit():
                return decision.model_copy(update={"args": self.args(tool_name, decision.args)})
            case Reject() | Respond():
                return decision.model_copy(update={"message": self.text(decision.message)})
            case _:
                return decision


def _said(value: Any) -> str | None:
    """The secret of an input that is given as one; None where it is none."""
    return value.get_secret_value() if isinstance(value, SecretStr) else None


async def created(engine: Engine, head: RunHead, sealing: Sealing) -> RunRecord:
    """The run of this request, and its secrets: stored before it, so that there is none without its secrets."""
    await sealing.keep(head.run_id)
    record = await engine.runs.create(run_record(head, engine.options.plan_versions))
    if record.run_id != head.run_id:  # the request was made before
        await sealing.forget(head.run_id)
    return record


async def sealed_text(engine: Engine, run_id: str, text: str) -> str:
    """A text for a run that is under way, without credentials; they are stored for the run."""
    vault = engine.ports.vault
    return text if vault is None else str(await vault.seal(run_id, text))


async def sealed_decision(engine: Engine, request: ApprovalRequest, decision: Decision) -> Decision:
    """A person's answer without secrets; they are stored for the run that has asked."""
    sealing = Sealing.of(engine)
    hidden = sealing.decision(request.tool, decision)
    await sealing.keep(request.run_id)
    return hidden


def hidden_messages(engine: Engine, state: Mapping[str, Any]) -> dict[str, Any]:
    """The messages of a thread in which credentials stood, to be put in the place of those with the same id."""
    sealing = Sealing.of(engine)
    messages = [each for each in state.get("messages") or [] if isinstance(each.content, str) and each.id]
    changed = [(each, text) for each in messages if (text := sealing.text(each.content)) != each.content]
    return {"messages": [each.model_copy(update={"content": text}) for each, text in changed]} if changed else {}


def is_literal(value: JSON) -> bool:
    """Whether a secret argument is written out: neither a reference nor a placeholder, nor nothing."""
    return isinstance(value, str) and bool(value) and "${" not in value and not placeholders_in(value)


async def share_secrets(session: Session, value: JSON) -> None:
    """A result that another run's call has given may hold placeholders of that run: they are this run's too."""
    vault, names = session.engine.ports.vault, placeholders_in(value)
    if vault is not None and names:
        await vault.store.share(session.head_run_id, sorted(names))
