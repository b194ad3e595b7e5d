"""What the policies of a run say of its calls, of its plans, and of the questions it asks.

A run is held to every policy that one of its drives began under: each is a row of its journal, whole, so that a file
that changes while the run goes on can forbid and ask more, and never less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from checkpoints.runs import OPEN
from nodes.rejection import defaults_of
from plans.decisions import ApprovalRequest, Decision, Edit, RequestKind
from plans.faults import Fault
from plans.plan import Risk, StepDraft
from plans.policy import NO_TERMS, Policy, Terms
from plans.policy_rulings import Action, Ruling, both_terms, ruling, surely_denied
from plans.provenance import DEFAULT, Provenance
from plans.references import UnresolvedReference, references_in, resolve
from plans.values import JSON
from tools.tool import Tool

if TYPE_CHECKING:
    from nodes.session import Session
    from nodes.state import RunHead


class Actor(NamedTuple):
    """As what a run acts: its role, and whose it is."""

    role: str | None = None
    tenant: str = ""


NOBODY = Actor()
"""Who has no role, where there are no tenants."""


def actor_of(head: RunHead | None) -> Actor:
    """As what the run with this head acts."""
    return Actor(head.role, head.tenant) if head is not None else NOBODY


class PolicySource(Protocol):
    """Where the policy of this process comes from."""

    async def current(self) -> Policy | None:
        """The policy as it is now; None where there is none. Raises ConfigurationError for one that cannot be used."""
        ...


class NoPolicy:
    """Where nobody has written one."""

    async def current(self) -> Policy | None:
        """None."""
        return None


NO_POLICY = NoPolicy()


async def policies_now(source: PolicySource) -> tuple[Policy, ...]:
    """The policies that a run would be held to which began now. Raises ConfigurationError."""
    now = await source.current()
    return () if now is None else (now,)


async def note_policy(session: Session) -> None:
    """Hold the run to the policy that this drive begins under, as to those before it. Raises ConfigurationError."""
    finished = session.fold.finished
    if finished is not None and finished["status"] not in OPEN:
        return
    now = await session.engine.options.policy.current()
    if now is not None and now.sha256 not in {each.sha256 for each in session.fold.policies}:
        await session.record("policy", body={"sha256": now.sha256, "policy": now.stored()})


def action_of(
    tool: Tool,
    args: Mapping[str, JSON],
    actor: Actor,
    *,
    risk: Risk | None = None,
    unknown: Collection[str] = (),
    sources: tuple[Provenance, ...] | None = None,
) -> Action:
    """A call as a policy sees it, its tool's own defaults filled in; nobody's text stands in those."""
    schema = tool.input_schema
    declared: Mapping[str, Any] = schema.get("properties") or {}
    defaults = {name: value for name, value in defaults_of(tool).items() if name not in {*unknown, *args}}
    own = tuple(Provenance(argument=name, source=DEFAULT) for name in defaults)
    return Action(
        tool=tool.name,
        effect=tool.effect,
        args={**defaults, **args},
        toolkit=tool.toolkit,
        risk=risk or tool.risk,
        role=actor.role,
        tenant=actor.tenant,
        takes=frozenset(declared) if schema.get("additionalProperties") is False else None,
        unknown=frozenset(unknown),
        sources=sources if sources is None else (*sources, *own),
    )


def ruling_before(policies: Sequence[Policy], tool: Tool, step: StepDraft, actor: Actor) -> Ruling:
    """The strictest of what may become of a step of a plan, before its references have values."""
    return ruling(policies, _planned(tool, step, actor))


def denied_steps(
    policies: Sequence[Policy], steps: Sequence[StepDraft], tools: Mapping[str, Tool], actor: Actor
) -> list[Fault]:
    """NOT_PERMITTED for steps that the policy denies, whatever their references turn out to be."""
    found = []
    for place, step in enumerate(steps):
        tool = tools.get(step.tool or "")
        if tool is None or step.action != "tool":
            continue
        if (denied := surely_denied(policies, _planned(tool, step, actor))) is not None:
            fix = "use another tool, or other arguments"
            path = f"steps[{place}].tool"
            found.append(Fault(code="NOT_PERMITTED", message=denied.why, step=step.id, path=path, fix=fix))
    return found


def any_call(tool: Tool, actor: Actor = NOBODY) -> Action:
    """A call of which nothing is known yet but its tool."""
    return action_of(tool, {}, actor, unknown=[*(tool.input_schema.get("properties") or {})])


def may_be_called(policies: Sequence[Policy], tool: Tool, actor: Actor) -> bool:
    """Whether there may be a call of this tool that the policies do not deny."""
    return not policies or surely_denied(policies, any_call(tool, actor)) is None


def _planned(tool: Tool, step: StepDraft, actor: Actor) -> Action:
    literal: dict[str, JSON] = {}
    for name, value in step.args.items():
        try:
            if not references_in(value):
                literal[name] = resolve(value, dict[str, JSON]().__getitem__)
        except UnresolvedReference:
            continue
    risk = step.risk if step.risk == "high" else tool.risk
    return action_of(tool, literal, actor, risk=risk, unknown=step.args.keys() - literal.keys())


def asking_terms(policies: Sequence[Policy]) -> Terms:
    """The terms of questions that no rule is about. Where nobody may answer by two policies, those of the first."""
    found = NO_TERMS
    for policy in policies:
        found = both_terms(found, policy.asking) or found
    return found


def on_terms(
    terms: Terms, kind: RequestKind, asked_at: datetime, expires_s: float | None, started_by: str = ""
) -> dict[str, Any]:
    """What a question says of who may answer it, and until when. `expires_s` is for terms that do not say it. Only of
    an action several people can be asked, or others than who has started the run. Whether something has happened is a
    question of fact: no silence answers it."""
    after_s = terms.escalate_after_s
    lasts_s = None if kind == "unknown_outcome" else terms.expires_s or expires_s
    said: dict[str, Any] = {"approvers": terms.approvers, "needed": (terms.needed or 1) if kind == "risk" else 1}
    if terms.by_another and kind == "risk":
        said["not_by"] = started_by
    if lasts_s is not None:
        said["expires_at"] = asked_at + timedelta(seconds=lasts_s)
    if after_s is not None and (lasts_s is None or after_s < lasts_s):
        said |= {"escalates_at": asked_at + timedelta(seconds=after_s), "escalates_to": terms.escalate_to}
    return said


def terms_of(request: ApprovalRequest, decision: Decision) -> dict[str, JSON]:
    """The terms on which a decision was taken, as its row keeps them. Other arguments are one person's word, however
    many were to agree to those that were asked about."""
    kept = request.model_copy(update={"needed": 1}) if isinstance(decision, Edit) else request
    names = {"rule", "needed", "approvers", "not_by", "escalates_to"}
    return kept.model_dump(mode="json", include=names, exclude_defaults=True)


def still_counts(decision: Mapping[str, Any], terms: Terms) -> bool:
    """Whether a decision that was taken on the terms of its question satisfies these."""
    asked = decision.get("terms") or {}
    if asked.get("needed", 1) < (terms.needed or 1) or (terms.by_another and "not_by" not in asked):
        return False
    who, later = set(asked.get("approvers", ())), set(asked.get("escalates_to", ()))
    return not terms.approvers or (bool(who) and who | later <= {*terms.approvers, *terms.escalate_to})
