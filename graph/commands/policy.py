"""`surestep policy`: a policy judged against the tools there are, and what it says of one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.commands.looking import show_table
from graph.commands.printing import harmless, print_json, say, write_out
from graph.commands.reading import values
from graph.commands.shared import load_settings, registry_for
from plans.errors import InvalidInput, UnknownTool
from plans.wording import counted, listed, nearest

if TYPE_CHECKING:
    from graph.settings import Settings
    from plans.plan import Risk
    from plans.policy import Policy, Terms
    from plans.policy_rulings import Action, Judged, Ruling
    from tools.registry import Registry

MARK = {True: "fits", None: "may fit", False: "does not fit"}


@dataclass(frozen=True, slots=True)
class Supposed:
    """A call as the command line describes it."""

    tool: str
    args: Sequence[str]
    unknown: Sequence[str]
    tainted: Sequence[str]
    role: str | None
    tenant: str
    risk: Risk | None


def check_policy(file: Path | None, toolkits: Sequence[str], *, as_json: bool) -> None:
    """What each tool may come to, and what is odd; exit 2 for a policy that cannot be used."""
    from nodes.policing import any_call
    from plans.policy_lint import outcomes, remarks

    settings = load_settings(toolkits)
    policy, path = _policy(settings, file)
    tools = [any_call(tool) for tool in registry_for(settings).values()]
    trusted = [tool.name for tool in registry_for(settings).values() if tool.spec.output_trust == "trusted"]
    found = remarks(policy, tools, read_only_trusted=trusted)
    comes = {tool.tool: [(each.then, each.rule) for each in outcomes(policy, tool)] for tool in tools}
    if as_json:
        print_json(
            {
                "policy": str(path),
                "sha256": policy.sha256,
                "rules": [rule.name for rule in policy.rules],
                "tools": {name: [{"then": then, "rule": rule} for then, rule in each] for name, each in comes.items()},
                "remarks": [{"about": each.about or None, "message": each.message} for each in found],
            }
        )
        return
    rows = [(tool.tool, tool.effect, tool.risk, _comes_to(comes[tool.tool])) for tool in tools]
    show_table(("tool", "effect", "risk", "may come to"), rows, "no tools")
    for remark in found:
        say(harmless(remark.message))
    say(f"{path} can be used: {counted(len(policy.rules), 'rule')}, sha256 {policy.sha256[:12]}")


def explain_call(supposed: Supposed, file: Path | None, toolkits: Sequence[str], *, as_json: bool) -> None:
    """Each rule, whether it fits and why not; then what holds."""
    from plans.policy_rulings import explained, ruling

    settings = load_settings(toolkits)
    policy, _ = _policy(settings, file)
    action = _action(supposed, registry_for(settings))
    held, steps = ruling([policy], action), explained(policy, action)
    if as_json:
        told = [
            {"kind": kind, "name": name, "fits": judged.truth, "because": judged.because}
            for kind, name, judged in steps
        ]
        print_json({"tool": action.tool, "args": dict(action.args), "judged": told, "ruling": _as_json(held)})
        return
    lines = [f"{kind} {name!r}: {_words(judged)}" for kind, name, judged in steps]
    write_out(harmless("\n".join([*lines, "", *_conclusion(held)])) + "\n")


def _words(judged: Judged) -> str:
    return MARK[judged.truth] + (f": {', '.join(judged.because)}" if judged.because else "")


def _conclusion(held: Ruling) -> list[str]:
    terms = held.terms
    lines = [f"{held.then}{f' by {held.rule!r}' if held.rule else ''}, risk {held.risk}"]
    if held.then in ("ask", "deny"):
        lines.append(held.why)
    elif held.then == "silent":
        lines.append("no rule fits: a read goes on, and asks as its risk says")
    if terms is None:
        lines.append("nobody may answer a question about it")
    elif held.then != "deny":
        when = _ASKED[held.then]
        who = listed(terms.approvers, 20) if terms.approvers else "anybody"
        lines.append(f"{when}: {terms.needed or 1} of {who}{_in_time(terms)}")
    return lines


_ASKED = {
    "ask": "who is asked",
    "silent": "who is asked, if something asks",
    "allow": "nobody is asked; where the plan, a repetition or strangers' text asks all the same",
}


def _in_time(terms: Terms) -> str:
    told = f", within {terms.expires_s:g} s" if terms.expires_s else ""
    if terms.escalate_after_s is None:
        return told
    return f"{told}, after {terms.escalate_after_s:g} s {listed(terms.escalate_to, 20)} too"


def _as_json(held: Ruling) -> dict[str, Any]:
    terms = held.terms.model_dump(mode="json", exclude_defaults=True) if held.terms is not None else None
    return {"then": held.then, "rule": held.rule, "why": held.why or None, "risk": held.risk, "terms": terms}


def _comes_to(outcomes: Sequence[tuple[str, str | None]]) -> str:
    return ", ".join(
        f"{then} ({rule})" if rule and then != "silent" else _UNSAID.get(then, then) for then, rule in outcomes
    )


_UNSAID = {"silent": "as its risk says", "deny": "deny (no rule)"}


def _policy(settings: Settings, file: Path | None) -> tuple[Policy, Path]:
    from graph.policy_file import PolicyFile

    path = file or settings.policy
    if path is None:
        raise InvalidInput("there is no policy: name one by --policy FILE, or by the setting `policy`")
    return PolicyFile(path).read(), path


def _action(supposed: Supposed, registry: Registry) -> Action:
    from nodes.policing import Actor, action_of
    from plans.provenance import Provenance

    tool = registry.get(supposed.tool)
    if tool is None:
        close = nearest(supposed.tool, registry)
        meant = f"did you mean {close}?" if close else f"registered: {listed(list(registry), 30)}"
        raise UnknownTool(f"there is no tool {supposed.tool!r}; {meant}")
    args = values(supposed.args, "--arg")
    named = {*args, *supposed.unknown}
    if strange := [name for name in supposed.tainted if name not in named]:
        raise InvalidInput(f"--tainted {strange[0]} names no argument of this call; give it by --arg or --unknown")
    sources = tuple(
        Provenance(argument=name, source="", trusted=name not in supposed.tainted) for name in sorted(named)
    )
    unknown = [name for name in supposed.unknown if name not in args]
    return action_of(
        tool, args, Actor(supposed.role, supposed.tenant), risk=supposed.risk, unknown=unknown, sources=sources
    )
