"""What is odd about a policy, against the tools there are: rules that fit nothing or are never reached, arguments that
no tool takes, and what each tool may come to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from plans.plan import RISKS
from plans.policy import Matched, Policy, Rule, Trusted, argument_of, fits
from plans.policy_rulings import STRICTNESS, Action, Then, judge, possible
from plans.wording import listed, nearest


@dataclass(frozen=True, slots=True)
class Remark:
    """Something odd about one rule, floor or trusted source, by its name, or about a tool that no rule is about."""

    about: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of a tool may come to, by which rule; None: by no rule."""

    then: Then
    rule: str | None


def remarks(policy: Policy, tools: Sequence[Action], *, read_only_trusted: Sequence[str] = ()) -> list[Remark]:
    """Everything odd. `tools` are calls with all arguments unknown; `read_only_trusted` names tools whose results are
    trusted without a word of the policy."""
    return [
        *_about_rules(policy, tools),
        *_about_floors(policy, tools),
        *(remark for each in policy.trusted for remark in _about_trust(each, tools, read_only_trusted)),
        *_denied(policy, tools),
    ]


def outcomes(policy: Policy, tool: Action) -> list[Outcome]:
    """What a call of this tool may come to, in any role, for any tenant and of any risk, from the
    mildest."""
    found = {Outcome(each.then, each.rule) for call in _calls(policy, tool) for each in possible(policy, call)}
    return sorted(found, key=lambda each: (STRICTNESS.index(each.then), each.rule or ""))


def _calls(policy: Policy, tool: Action) -> Iterator[Action]:
    named = (*policy.rules, *policy.floors)
    roles = dict.fromkeys(role for rule in named for role in rule.roles)
    tenants = dict.fromkeys(tenant for rule in named for tenant in rule.tenants)
    for role, tenant, risk in product((None, *roles), ("", *tenants), RISKS[RISKS.index(tool.risk) :]):
        yield replace(tool, role=role, tenant=tenant, risk=risk)


def _about_rules(policy: Policy, tools: Sequence[Action]) -> Iterator[Remark]:
    calls = [call for tool in tools for call in _calls(policy, tool)]
    reached = {each.rule for call in calls for each in possible(policy, call)}
    for place, rule in enumerate(policy.rules):
        fitting = [call for call in calls if judge(rule, policy, call, (call.risk,)).truth is not False]
        odd = list(_about_args(rule, policy, tools))
        yield from odd
        if not fitting and not odd:
            yield Remark(rule.name, f"the rule {rule.name!r} fits no tool that is registered here")
        elif not fitting:
            continue
        elif rule.name not in reached:
            before = [each for each in policy.rules[:place] if _settles(each, policy, fitting)]
            names = listed([repr(each.name) for each in before], 3)
            yield Remark(rule.name, f"the rule {rule.name!r} is never reached: {names} before it fits all that it fits")
        elif rule.then != "allow" and not rule.effects:
            yield from _about_reads(rule, fitting)


def _about_reads(rule: Rule, calls: Sequence[Action]) -> Iterator[Remark]:
    reads = list(dict.fromkeys(call.tool for call in calls if call.effect == "read"))
    if reads and len(reads) < len({call.tool for call in calls}):
        does = "asks about" if rule.then == "ask" else "denies"
        fix = 'say effects = "write" if they are not meant'
        yield Remark(rule.name, f"the rule {rule.name!r} {does} tools that only read too: {listed(reads, 5)}; {fix}")


def _settles(rule: Matched, policy: Policy, calls: Sequence[Action]) -> bool:
    return any(judge(rule, policy, call, (call.risk,)).truth for call in calls)


def _about_floors(policy: Policy, tools: Sequence[Action]) -> Iterator[Remark]:
    for floor in policy.floors:
        yield from _about_args(floor, policy, tools)
        if all(judge(floor, policy, call).truth is False for tool in tools for call in _calls(policy, tool)):
            yield Remark(floor.name, f"the floor {floor.name!r} fits no tool that is registered here")


def _about_args(rule: Matched, policy: Policy, tools: Sequence[Action]) -> Iterator[Remark]:
    """Arguments of a rule that none of the tools takes which it is about."""
    open_to: dict[str, Any] = {"args": {}, "roles": (), "tenants": (), "tainted": None} | (
        {"risk": ()} if isinstance(rule, Rule) else {}
    )
    bare = rule.model_copy(update=open_to)
    about = [tool for tool in tools if judge(bare, policy, tool, (tool.risk,)).truth is not False]
    if any(tool.takes is None for tool in about):
        return
    taken = sorted({name for tool in about for name in tool.takes or ()})
    named = [argument_of(place) for place in rule.args]
    named += [] if isinstance(rule.tainted, bool) or rule.tainted is None else rule.tainted
    for name in dict.fromkeys(named):
        if about and name not in taken:
            close = nearest(name, taken)
            meant = f"; did you mean {close}?" if close else ""
            yield Remark(rule.name, f"{rule.name!r} speaks of {name}, which no tool takes that it fits{meant}")


def _about_trust(source: Trusted, tools: Sequence[Action], trusted: Sequence[str]) -> Iterator[Remark]:
    if source.from_tool is not None:
        about = [tool.tool for tool in tools if fits(tool.tool, (source.from_tool,))]
        if not about:
            yield Remark(source.name, f"{source.name!r} trusts {source.from_tool}, and there is no such tool here")
        elif set(about) <= set(trusted):
            yield Remark(source.name, f"{source.name!r} trusts what is trusted already: {listed(about, 5)}")
    if source.tools and not any(fits(tool.tool, source.tools) for tool in tools):
        yield Remark(source.name, f"{source.name!r} is for {' or '.join(source.tools)}, and there is no such tool here")


def _denied(policy: Policy, tools: Sequence[Action]) -> Iterator[Remark]:
    unspoken: Mapping[str, None] = {
        tool.tool: None for tool in tools if [each.rule for each in outcomes(policy, tool)] == [None]
    }
    denied = [tool.tool for tool in tools if tool.tool in unspoken and tool.effect != "read"]
    if denied:
        yield Remark("", f"no rule is about {listed(denied, 20)}: every call of them is denied")
