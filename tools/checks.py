"""What keeps declared tools from making sense together: every fault at once, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.errand import why_not_apart
from tools.fallback_faults import fallback_faults
from tools.rule_faults import rule_faults
from tools.shadow_checks import faults_of_shadow
from tools.spec import RETRIED_EFFECTS
from tools.spec_faults import contradictions, unreadable
from tools.tool import Tool


def faults_among(tools: Mapping[str, Tool]) -> list[str]:
    """All faults of all tools, in the order of the tools."""
    return [f"tool {tool.name!r} {fault}" for tool in tools.values() for fault in _of_one(tool, tools)]


def faults_alone(tool: Tool) -> list[str]:
    """What is wrong with a tool whatever others there are."""
    return list(_of_itself(tool))


def _of_one(tool: Tool, tools: Mapping[str, Tool]) -> Iterator[str]:
    yield from _of_itself(tool)
    yield from fallback_faults(tool, tools)
    yield from faults_of_shadow(tool, tools)


def _of_itself(tool: Tool) -> Iterator[str]:
    if fault := tool.arguments.fault():
        yield f"has an args_schema that cannot be used: {fault}"
    yield from contradictions(tool.spec)
    yield from _of_effect(tool)
    yield from _of_names(tool)
    yield from rule_faults(tool)
    if tool.spec.isolation == "process" and (why := why_not_apart(tool.callee.function)):
        yield f"has isolation='process', but {why}"
    yield from _of_results(tool)


def _of_effect(tool: Tool) -> Iterator[str]:
    effect = tool.effect
    if effect not in RETRIED_EFFECTS and tool.spec.retry.max_attempts > 1:
        yield f"is {effect} and has retries, which could repeat its effect; leave retry out"
    if effect != "read" and tool.spec.cache_ttl_s is not None:
        yield f"is {effect} and has cache_ttl_s; only results of reads are cached"
    if effect == "read" and tool.undo is not None:
        yield "only reads, so there is nothing for undo to take back"


def _of_names(tool: Tool) -> Iterator[str]:
    if tool.arguments.open:
        return
    known = tool.arguments.names
    for setting in ("sensitive_args", "secret_args", "identity_args"):
        for name in getattr(tool.spec, setting) or ():
            if name not in known:
                yield f"names {name!r} in {setting}; its arguments are {', '.join(sorted(known)) or 'none'}"


def _of_results(tool: Tool) -> Iterator[str]:
    for flag in tool.spec.error_when:
        yield from unreadable(flag.when, "an error_when")
        if flag.message_from is not None:
            yield from unreadable(flag.message_from, "a message_from in error_when")
    if isinstance(tool.spec.never_empty, str):
        yield from unreadable(tool.spec.never_empty, "a never_empty")
