"""Tests of what can be changed about a tool while running."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.calls import tool_of
from tools.local import LocalSettings
from tools.settings import fault_of_name, faults_in, flattened, merged, nested, tool_now, with_changes
from tools.tool import Tool


@pytest.fixture
def tool() -> Tool:
    """A tool with a breaker of its own."""
    return tool_of(lambda: 1, name="t", breaker={"window": 20, "cooldown_s": 5}, timeout_s=3)


async def test_without_changes_the_tool_is_itself(tool: Tool) -> None:
    """Nothing stored, nothing copied."""
    assert (await tool_now(tool, LocalSettings())).tool is tool


async def test_changes_count_and_the_rest_stays(tool: Tool) -> None:
    """A changed group keeps what was declared and not changed; the declared tool is untouched."""
    stored = LocalSettings({"t": {"enabled": False, "timeout_s": 1, "breaker": {"cooldown_s": 9}}})
    changed = (await tool_now(tool, stored)).tool
    assert (changed.enabled, changed.spec.timeout_s) == (False, 1)
    assert (changed.spec.breaker.window, changed.spec.breaker.cooldown_s) == (20, 9)
    assert (tool.enabled, tool.spec.timeout_s, tool.spec.breaker.cooldown_s) == (True, 3, 5)


async def test_the_same_changes_are_worked_out_once_and_other_ones_anew(tool: Tool) -> None:
    """Calls share what was made of the stored changes until these are others."""
    store = LocalSettings({"t": {"timeout_s": 1}})
    first = await tool_now(tool, store)
    assert await tool_now(tool, LocalSettings({"t": {"timeout_s": 1}})) is first
    store.changes["t"] = {"timeout_s": 2}
    assert (await tool_now(tool, store)).tool.spec.timeout_s == 2
    store.changes["t"] = {}
    assert (await tool_now(tool, store)).tool is tool


def test_a_group_that_was_not_declared_can_be_set_and_taken_away(tool: Tool) -> None:
    """A rate limit can be put on a tool that had none, and concurrency taken off."""
    changed = with_changes(tool, {"rate_limit": {"calls": 3}, "concurrency": None}).tool
    assert changed.spec.rate_limit is not None
    assert (changed.spec.rate_limit.calls, changed.spec.concurrency) == (3, None)
    limited = tool_of(lambda: 1, name="t", rate_limit={"calls": 1})
    assert with_changes(limited, {"rate_limit": None}).tool.spec.rate_limit is None


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"timeout_s": 0}, "timeout_s=0: should be greater than 0"),
    ({"timeout_s": "soon"}, "timeout_s='soon': should be a valid number"),
    ({"timeout_s": "3"}, "timeout_s='3': should be a valid number"),
    ({"timeout_s": True}, "timeout_s=True"),
    ({"timeout_s": None}, "timeout_s=None"),
    ({"timeout_s": float("inf")}, "timeout_s is inf"),
    ({"concurrency": 2**70}, "concurrency is an integer beyond 64 bits"),
    ({"timeout_s": "a\0"}, "cannot be stored"),
    ({"enabled": 1}, "enabled=1: should be true or false"),
    ({"enabled": "yes"}, "enabled='yes'"),
    ({"breaker.window": 0}, "breaker.window=0"),
    ({"retry.max_attempts": 1.5}, "retry.max_attempts=1.5"),
    ({"retry.max_attempts": True}, "retry.max_attempts=True"),
    ({"rate_limit.per_s": 2}, "rate_limit.calls is needed too"),
    ({"concurrency": 0}, "concurrency=0"),
    ({"shadow_share": 0}, "shadow_share=0"),
    ({"effect": "read"}, "no setting 'effect'"),
    ({"roles": []}, "no setting 'roles'"),
    ({"risk": "low"}, "no setting 'risk'"),
    ({"answered_by": "u"}, "no setting 'answered_by'"),
    ({"timeout": 3}, "did you mean timeout_s?"),
    ({"max_attempts": 3}, "did you mean retry.max_attempts?"),
    ({"retry.attempts": 3}, "did you mean retry.max_attempts?"),
    ({"cooldown": 3}, "did you mean breaker.cooldown_s?"),
    ({"zzz": 3}, "there are enabled, timeout_s, retry.max_attempts"),
]


@pytest.mark.parametrize(("changes", "said"), SENSELESS)
def test_senseless_changes_are_told_by_setting(tool: Tool, changes: dict[str, Any], said: str) -> None:
    """What makes no sense, or would change what a tool does or who may use it, is a fault with its name."""
    faults = faults_in(tool, changes)
    assert len(faults) == 1
    assert said in faults[0]


def test_every_fault_is_told_at_once(tool: Tool) -> None:
    """Unknown names, wrong types and senseless values together."""
    faults = faults_in(tool, {"timeout_s": 0, "enabled": 3, "breaker.windw": 1, "retry.jitter": "x", "concurrency": 2})
    assert [fault.split("=")[0] for fault in faults] == [
        "there is no setting 'breaker.windw'; did you mean breaker.window?",
        "enabled",
        "timeout_s",
        "retry.jitter",
    ]
    send = tool_of(lambda: 1, name="send", effect="irreversible")
    assert len(faults_in(send, {"timeout_s": 0, "retry.max_attempts": 3, "cache_ttl_s": 1})) == 3


@pytest.mark.parametrize(
    ("effect", "changes", "said"),
    [
        ("irreversible", {"retry.max_attempts": 2}, "t is irreversible and has retries"),
        ("transactional", {"retry.max_attempts": 2}, "has retries"),
        ("idempotent", {"cache_ttl_s": 2}, "only results of reads are cached"),
    ],
)
def test_what_the_effect_forbids_is_a_fault(effect: str, changes: dict[str, Any], said: str) -> None:
    """A change is checked as the declaration was: an effect is not repeated because somebody set a number."""
    assert said in "; ".join(faults_in(tool_of(lambda: 1, name="t", effect=effect), changes))


@pytest.mark.parametrize(("changes", "said"), [case for case in SENSELESS if "answered_by" not in case[0]])
def test_stored_changes_without_sense_are_ignored_one_by_one(tool: Tool, changes: dict[str, Any], said: str) -> None:
    """The tool was declared anew since: the faulty setting is as declared, the sound one counts, and it is told."""
    now = with_changes(tool, {**nested(changes), "cache_ttl_s": 7})
    assert now.tool.spec == tool.spec.model_copy(update={"cache_ttl_s": 7})
    assert now.tool.enabled
    assert now.ignored is not None
    assert list(now.ignored) == list(changes)
    assert said in next(iter(now.ignored.values()))


def test_retries_stored_for_a_read_do_not_repeat_what_has_become_an_effect() -> None:
    """A tool that read when its retries were set, and is declared irreversible now, is called once."""
    tool = tool_of(lambda: 1, name="t", effect="irreversible")
    now = with_changes(tool, {"retry": {"max_attempts": 5, "jitter": 2}})
    assert (now.tool.spec.retry.max_attempts, now.tool.spec.retry.jitter) == (1, 2)
    assert now.ignored is not None
    assert "repeat its effect" in now.ignored["retry.max_attempts"]


def test_who_answers_stands_beside_the_settings(tool: Tool) -> None:
    """A promotion is stored with the settings and is none of them. What was kept of the former's results is of another
    version."""
    now = with_changes(tool, {"answered_by": "u", "timeout_s": 1})
    assert (now.answered_by, now.tool.spec.timeout_s, now.ignored) == ("u", 1, None)
    assert now.tool.spec.version == "1, answered by u"


FLAT = {"timeout_s": 1, "retry.jitter": 0, "retry.max_attempts": 2, "rate_limit": None}


def test_stored_and_flat_are_two_forms_of_the_same() -> None:
    """Nothing is lost between what people write and what is stored."""
    assert nested(FLAT) == {"timeout_s": 1, "retry": {"jitter": 0, "max_attempts": 2}, "rate_limit": None}
    assert flattened(nested(FLAT)) == FLAT


@pytest.mark.parametrize(
    ("changes", "unset", "gone", "new"),
    [
        ({"timeout_s": 2}, [], ["timeout_s"], {"timeout_s": 2}),
        ({"rate_limit.calls": 2}, [], ["rate_limit"], {"rate_limit.calls": 2}),
        ({}, ["retry.jitter"], ["retry.jitter"], {}),
        ({}, ["retry"], ["retry.jitter", "retry.max_attempts"], {}),
        ({}, ["retry.jit"], [], {}),
        ({"retry": 3}, [], ["retry.jitter", "retry.max_attempts"], {"retry": 3}),
    ],
)
def test_changes_displace_what_they_mean(
    changes: dict[str, Any], unset: list[str], gone: list[str], new: dict[str, Any]
) -> None:
    """A setting takes the place of itself, of its group as a whole, or of all of the group; the rest stays."""
    kept = {name: value for name, value in FLAT.items() if name not in gone}
    assert merged(FLAT, changes, unset) == {**kept, **new}


@pytest.mark.parametrize("name", ["enabled", "timeout_s", "breaker.cooldown_s", "rate_limit", "repeats"])
def test_settings_have_names(name: str) -> None:
    """Named as people write them; a group only where a tool can be without it."""
    assert fault_of_name(name) is None
    assert fault_of_name("retry") is not None
