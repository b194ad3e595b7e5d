"""What policies come to for one call: allowed, asked about on which terms, or denied. Pure.

Where it cannot be told whether a rule fits, because an argument is missing, is no plain value, or is not known yet,
both are possible, and the strictest of what is possible is what holds. So do several policies: a run that was begun
under one and goes on under another is held to both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

from plans.plan import Effect, Risk, highest_risk
from plans.policy import NO_TERMS, Matched, Policy, Rule, Terms, argument_of, fits
from plans.policy_conditions import Condition, Truth, truth_at
from plans.provenance import Provenance
from plans.values import JSON
from plans.wording import either

Then = Literal["allow", "silent", "ask", "deny"]
STRICTNESS: tuple[Then, ...] = ("allow", "silent", "ask", "deny")
"""From the mildest. Silent: no rule fits a call that only reads; then risks decide, as without a policy."""


@dataclass(frozen=True, slots=True)
class Action:
    """A call that asks to be made, or that a plan may come to make. `takes` names the arguments that the tool declares
    (None: any may come), `unknown` those whose values are not known yet. `sources` say where values came from; None:
    nobody has said so."""

    tool: str
    effect: Effect
    args: Mapping[str, JSON] = field(default_factory=dict)
    toolkit: str = ""
    risk: Risk = "low"
    role: str | None = None
    tenant: str = ""
    takes: frozenset[str] | None = None
    unknown: frozenset[str] = frozenset()
    sources: tuple[Provenance, ...] | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """What holds for a call. `rule` names the rule that says so, `why` is a sentence for who is asked or refused;
    `terms` are those of any question about the call (None: nobody may answer one). `risk` is the call's, with the
    floors."""

    then: Then
    why: str = ""
    rule: str | None = None
    terms: Terms | None = NO_TERMS
    risk: Risk = "low"


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a rule or floor fits a call, and what of it does not, or cannot be told."""

    truth: Truth
    because: tuple[str, ...] = ()


def ruling(policies: Sequence[Policy], action: Action) -> Ruling:
    """The strictest of what these policies say of a call; without one, nothing."""
    found = [each for policy in policies for each in possible(policy, action)]
    return reduce(stricter, found) if found else Ruling("silent", risk=action.risk)


def surely_denied(policies: Sequence[Policy], action: Action) -> Ruling | None:
    """Why a call is denied whatever becomes of what is not known yet; None if it may be made."""
    for policy in policies:
        found = list(possible(policy, action))
        if all(each.then == "deny" for each in found):
            return reduce(stricter, found)
    return None


def possible(policy: Policy, action: Action) -> Iterator[Ruling]:
    """Everything that a policy may say of a call: one ruling, or several where it cannot be told which rules fit."""
    risks = _risks(policy, action)
    risk = highest_risk(*risks)
    doubts: list[str] = []
    for rule in policy.rules:
        judged = judge(rule, policy, action, risks)
        if judged.truth is False:
            continue
        doubts += judged.because
        yield _by(rule, policy, action, risk, doubts)
        if judged.truth:
            return
    yield _by_none(policy, action, risk, doubts)


def explained(policy: Policy, action: Action) -> list[tuple[str, str, Judged]]:
    """Each floor, and each rule up to the first that fits for sure: its kind, its name, and whether it fits."""
    risks = _risks(policy, action)
    found = [("floor", floor.name, judge(floor, policy, action)) for floor in policy.floors]
    for rule in policy.rules:
        found.append(("rule", rule.name, judge(rule, policy, action, risks)))
        if found[-1][2].truth:
            break
    return found


def judge(rule: Matched, policy: Policy, action: Action, risks: Sequence[Risk] = ()) -> Judged:
    """Whether a rule fits a call of one of these risks: what does not fit settles it, else all doubts are named."""
    doubts: list[str] = []
    for truth, words in _told(rule, policy, action, risks):
        if truth is False:
            return Judged(False, (words,))
        doubts.append(words)
    return Judged(None if doubts else True, tuple(doubts))


_NAMED: Mapping[str, Callable[[Action, tuple[str, ...]], bool]] = {
    "tools": lambda action, names: fits(action.tool, names),
    "toolkits": lambda action, names: fits(action.toolkit, names),
    "effects": lambda action, names: action.effect in names,
    "roles": lambda action, names: action.role in names,
    "tenants": lambda action, names: action.tenant in names,
}
"""What a rule may name of a call, and whether the call is of it."""


def _told(rule: Matched, policy: Policy, action: Action, risks: Sequence[Risk]) -> Iterator[tuple[Truth, str]]:
    """Everything in which a rule does not fit a call, or of which that cannot be told."""
    for what, is_of in _NAMED.items():
        if (names := getattr(rule, what)) and not is_of(action, names):
            yield False, f"its {what} are {either(names)}"
    if isinstance(rule, Rule) and rule.risk and (truth := _some({risk in rule.risk for risk in risks})) is not True:
        yield truth, f"its risks are {either(rule.risk)}"
    for place, condition in rule.args.items():
        truth, words = _about(place, condition, action)
        if truth is not True:
            yield truth, words
    if rule.tainted is not None and (truth := _tainted(rule.tainted, policy, action)) is not True:
        what = str(rule.tainted).lower() if isinstance(rule.tainted, bool) else either(rule.tainted)
        yield truth, f"tainted: {what} {'cannot be told' if truth is None else 'does not hold'}"


def _about(place: str, condition: Condition, action: Action) -> tuple[Truth, str]:
    if not _comes(action, place):
        return condition.or_absent or condition.given is False, f"{action.tool} takes no {place}"
    if argument_of(place) in action.unknown:
        return None, f"{place} is not known yet"
    truth = truth_at(condition, action.args, place)
    return truth, f"{place} is not as it says" if truth is False else f"{place} is missing or cannot be judged"


def _comes(action: Action, place: str) -> bool:
    """Whether a call of this tool can have this argument at all."""
    name = argument_of(place)
    return action.takes is None or name in action.takes or name in action.args or name in action.unknown


def _some(truths: set[bool]) -> Truth:
    return truths.pop() if len(truths) == 1 else None


def _tainted(asked: bool | tuple[str, ...], policy: Policy, action: Action) -> Truth:
    """Whether text of strangers stands in these arguments, or in any: or that none has it, where that is asked."""
    names = {*action.args, *action.unknown} if isinstance(asked, bool) else {*asked} & {*action.args, *action.unknown}
    found = _found_tainted(names, policy, action)
    return found if asked is not False or found is None else not found


def _found_tainted(names: set[str], policy: Policy, action: Action) -> Truth:
    if action.sources is None:
        return None if names else False
    about = [(argument_of(each.argument), each) for each in action.sources]
    strange = any(
        name in names and not each.trusted and policy.trusts(each, action.tool) is None for name, each in about
    )
    if strange:
        return True
    return None if names & action.unknown or names - {name for name, _ in about} else False


def _risks(policy: Policy, action: Action) -> tuple[Risk, ...]:
    """Every risk that the call may have, by the floors that fit it for sure or perhaps."""
    judged = [(floor, judge(floor, policy, action).truth) for floor in policy.floors]
    least = highest_risk(action.risk, *(floor.risk for floor, truth in judged if truth))
    return tuple({least, *(highest_risk(least, floor.risk) for floor, truth in judged if truth is None)})


def _by(rule: Rule, policy: Policy, action: Action, risk: Risk, doubts: Sequence[str]) -> Ruling:
    terms = rule.terms.or_else(policy.asking)
    says = f"the policy {'asks' if rule.then == 'ask' else 'denies'} (rule {rule.name!r})"
    told = f": {rule.message}" if rule.message else ""
    return Ruling(rule.then, f"{action.tool}: {says}{told}{_in_doubt(doubts)}", rule.name, terms, risk)


def _by_none(policy: Policy, action: Action, risk: Risk, doubts: Sequence[str]) -> Ruling:
    if action.effect == "read":
        return Ruling("silent", "", None, policy.asking, risk)
    why = f"{action.tool}: no rule of the policy fits this call, and it has an effect{_in_doubt(doubts)}"
    return Ruling("deny", why, None, policy.asking, risk)


def _in_doubt(doubts: Sequence[str]) -> str:
    return f"; which rule fits cannot be told: {', '.join(dict.fromkeys(doubts))}" if doubts else ""


def stricter(one: Ruling, other: Ruling) -> Ruling:
    """What is at least as strict as both. Two that ask take the more people, the shorter time, and those who may
    decide by both; where nobody may, it is denied."""
    risk = highest_risk(one.risk, other.risk)
    chosen, left = (one, other) if STRICTNESS.index(one.then) >= STRICTNESS.index(other.then) else (other, one)
    if chosen.then == "deny":
        return replace(chosen, risk=risk)
    if chosen.then == "ask" and left.then != "ask":
        return replace(chosen, risk=risk)
    terms = both_terms(one.terms, other.terms)
    if chosen.then == "ask" and terms is None:
        why = f"{chosen.why}; and {left.why}: nobody may decide by both"
        return Ruling("deny", why, _names(chosen, left), None, risk)
    return Ruling(
        chosen.then, chosen.why, _names(chosen, left) if chosen.then == left.then else chosen.rule, terms, risk
    )


def _names(one: Ruling, other: Ruling) -> str | None:
    return ", ".join(dict.fromkeys(rule for rule in (one.rule, other.rule) if rule)) or None


def both_terms(one: Terms | None, other: Terms | None) -> Terms | None:
    """Terms on which a question satisfies both; None where nobody may answer it."""
    if one is None or other is None:
        return None
    who = _deciders(one, other)
    if who is None:
        return None
    needed = max(one.needed or 1, other.needed or 1)
    bounds = [each.expires_s for each in (one, other) if each.expires_s is not None]
    expires = min(bounds, default=None)
    after = who.get("escalate_after_s")
    if after is not None and expires is not None and after >= expires:
        who = {"approvers": who["approvers"]}
    another = one.by_another or other.by_another
    said = {"needed": needed if needed > 1 else None, "by_another": another, "expires_s": expires, **who}
    return Terms(**{name: value for name, value in said.items() if value})


def _deciders(one: Terms, other: Terms) -> dict[str, Any] | None:
    """Who may decide by both: where anybody may by one of them, as the other says."""
    if not one.approvers or not other.approvers:
        chosen = one if one.approvers or (one.escalate_to and not other.approvers) else other
        names = ("approvers", "escalate_after_s", "escalate_to")
        return {name: getattr(chosen, name) for name in names}
    approvers = tuple(role for role in one.approvers if role in other.approvers)
    if not approvers:
        return None
    later = tuple(role for role in one.escalate_to if role in other.escalate_to)
    if not later or one.escalate_after_s is None or other.escalate_after_s is None:
        return {"approvers": approvers}
    after = max(one.escalate_after_s, other.escalate_after_s)
    return {"approvers": approvers, "escalate_after_s": after, "escalate_to": later}
