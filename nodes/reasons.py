"""Why a person is asked before a call is made, and whether one who was asked has answered it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodes.policing import Actor, action_of, asking_terms, still_counts
from nodes.rejection import another_was_rejected
from nodes.taint import sources_of, strange_arguments, told
from plans.plan import Step, highest_risk
from plans.policy import trusted_by_all
from plans.policy_rulings import Ruling, ruling
from plans.provenance import Provenance
from plans.values import JSON
from tools.person import asks_user

if TYPE_CHECKING:
    from nodes.admit import Facts
    from nodes.fold import RunFold


def ruled_on(step: Step, fold: RunFold, facts: Facts, args: dict[str, JSON]) -> Ruling:
    """What the run's policies say of a call. What is no call of a tool is none of their business."""
    risk = highest_risk(step.risk, facts.tool.risk if facts.tool else None)
    if facts.tool is None or not fold.policies:
        return Ruling("silent", terms=asking_terms(fold.policies), risk=risk)
    actor, sources = Actor(facts.role, fold.head.tenant if fold.head else ""), sources_of(fold, step, facts.unit)
    return ruling(fold.policies, action_of(facts.tool, args, actor, risk=risk, sources=sources))


def strange_in(step: Step, fold: RunFold, facts: Facts, args: dict[str, JSON]) -> tuple[Provenance, ...]:
    """What of a call's sensitive arguments a stranger may have written, where not every policy of the run trusts its
    source for that."""
    if facts.tool is None:
        return ()
    found = strange_arguments(fold, step, facts.unit, facts.tool.spec, args)
    return tuple(each for each in found if trusted_by_all(fold.policies, each, facts.tool.name) is None)


def why_ask(
    step: Step, fold: RunFold, facts: Facts, effect: str | None, ruled: Ruling, strange: Sequence[Provenance]
) -> str | None:
    """Why a person has to say so before a call is made; None if nobody has to. That a rule allows the call is no word
    for what a stranger has put into it: for that the policy names the source as one that it trusts."""
    reason = _why_ask(step, fold, facts, effect, ruled)
    if not strange:
        return reason
    return f"{facts.tool.name if facts.tool else step.action}: {told(strange)}{f'; and {reason}' if reason else ''}"


def _why_ask(step: Step, fold: RunFold, facts: Facts, effect: str | None, ruled: Ruling) -> str | None:
    if (before := _before(step, fold, facts, effect)) is not None:
        return f"it would repeat what step {before} has done"
    if facts.doubt is not None:
        return facts.doubt
    if facts.tool is not None and not asks_user(facts.tool) and another_was_rejected(fold, step.id, facts.tool):
        return f"a person has rejected another call of {facts.tool.name} in this run"
    if ruled.then == "ask":
        return ruled.why
    if step.require_approval:
        return "the plan asks for a person's approval"
    if ruled.risk == "high" and not _lifts(step, fold, ruled):
        return f"{facts.tool.name if facts.tool else step.action} is of high risk"
    return None


def _before(step: Step, fold: RunFold, facts: Facts, effect: str | None) -> str | None:
    """Who has had this effect, or may have had it, or is about to. A step run itself too, where its result was none,
    and the same step of the run that this was forked from, whatever its arguments were."""
    if effect is None:
        return None
    if before := fold.effects.get(effect):
        return before[0]
    if not fold.had.isdisjoint((facts.unit, step.id)):
        return f"{facts.unit} of the run that this one was forked from"
    return facts.starting.get(effect)


def _lifts(step: Step, fold: RunFold, ruled: Ruling) -> bool:
    """Whether a rule that allows a call does so although its risk is high. Of a step that was written after results
    were read it does not: whoever wrote those has had a say in it, and no rule knows what."""
    written_since = step.id in fold.swayed or fold.authors.get(step.id) in ("local_replan", "global_replan")
    return ruled.then == "allow" and not written_since


def unanswered(fold: RunFold, action: str, ruled: Ruling) -> str | None:
    """What is added to the question where it was not answered, or on terms that count no more; None where it was."""
    decided = fold.decisions.get(action)
    if decided is None:
        return ""
    if ruled.terms is not None and still_counts(decided, ruled.terms):
        return None
    if (decided.get("decision") or {}).get("type") == "edit":
        return f"; {decided.get('by', 'somebody')} has given it these arguments, which is one person's word"
    return "; it was approved on other terms than those that hold now"
