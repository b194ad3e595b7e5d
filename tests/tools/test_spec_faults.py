"""Tests of specs that make no sense: each fault has its own sentence, and all of them come at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plans.errors import ConfigurationError
from tools.declaration import spec_of
from tools.named_rules import CHECKS
from tools.registry import Registry, Toolkit
from tools.spec import BreakerPolicy, ErrorFlag, RateLimit, Repeats, Retry, ToolSpec

ROOT = Path(__file__).resolve().parents[2]


def tool(a: str, b: int = 0) -> dict[str, Any]:
    """A tool."""
    return {"a": a, "b": b}


def faults_of(*declared: dict[str, Any]) -> str:
    """What is said about tools with these declarations, named t0, t1, …; beside them is a read called `other`."""
    kit = Toolkit("k")
    kit.add(lambda a: a, name="other", description="Another.", effect="read")
    for index, options in enumerate(declared):
        kit.add(tool, **{"name": f"t{index}", **options})
    with pytest.raises(ConfigurationError) as refused:
        Registry.of(kit)
    return str(refused.value)


def probe(key: str, other: str) -> None:
    """One that takes more than the key."""


READ, ACTS, MOVES = {"effect": "read"}, {"effect": "irreversible"}, {"effect": "transactional"}

FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"timeout_s": 0}, "has timeout_s=0: should be greater than 0"),
    ({"timeout_s": -1}, "has timeout_s=-1"),
    ({"timeout_s": 86_401}, "has timeout_s=86401: should be less than or equal to 86400"),
    ({"timeout_s": float("nan")}, "has timeout_s=nan"),
    ({"timeout_s": float("inf")}, "has timeout_s=inf"),
    ({"timeout_s": "soon"}, "has timeout_s='soon': should be a valid number"),
    ({"timeout_s": None}, "has timeout_s=None"),
    ({"effect": "writes"}, "has effect='writes': should be 'read', 'transactional', 'idempotent' or 'irreversible'"),
    ({"risk": "huge"}, "has risk='huge': should be 'low', 'medium' or 'high'"),
    ({"isolation": "vm"}, "has isolation='vm'"),
    ({**MOVES, "isolation": "process"}, "is transactional and has isolation='process'"),
    ({"isolation": "async"}, "but it is a plain function"),
    ({**ACTS, "retry": {"max_attempts": 2}}, "is irreversible and has retries, which could repeat its effect"),
    ({**MOVES, "retry": {"max_attempts": 2}}, "is transactional and has retries"),
    ({**READ, "retry": {"max_attempts": 0}}, "has retry.max_attempts=0"),
    ({**READ, "retry": {"initial_interval": -1}}, "has retry.initial_interval=-1"),
    ({**READ, "retry": {"backoff_factor": 0.5}}, "has retry.backoff_factor=0.5"),
    ({**READ, "retry": {"jitter": -0.1}}, "has retry.jitter=-0.1"),
    ({**READ, "retry": {"initial_interval": 9, "max_interval": 3}}, "max_interval 3 is less than initial_interval 9"),
    ({**READ, "retry": {"max_attempt": 2}}, "has no setting 'retry.max_attempt'; did you mean 'max_attempts'?"),
    ({**READ, "retry": 3}, "has retry=3"),
    ({"breaker": {"min_calls": 11}}, "has breaker=an object: min_calls 11 is more than the 10 calls of its window"),
    ({"breaker": {"in_a_row": 4, "window": 3, "min_calls": 1}}, "in_a_row 4 is more than the 3 calls of its window"),
    ({"breaker": {"failure_rate": 1.0}}, "has breaker.failure_rate=1.0"),
    ({"breaker": {"cooldown_s": 0}}, "has breaker.cooldown_s=0"),
    ({"breaker": {"window": 0}}, "has breaker.window=0"),
    ({"rate_limit": {"calls": 0}}, "has rate_limit.calls=0"),
    ({"rate_limit": {"calls": 5, "per_s": 0}}, "has rate_limit.per_s=0"),
    ({"rate_limit": {}}, "has rate_limit without 'calls', which it needs"),
    ({"concurrency": 0}, "has concurrency=0"),
    ({"limit_scope": "world"}, "has limit_scope='world'"),
    ({"repeats": {"failures": 0}}, "has repeats.failures=0"),
    ({"cache_ttl_s": 0, **READ}, "has cache_ttl_s=0"),
    ({"cache_ttl_s": 5, **ACTS}, "is irreversible and has cache_ttl_s; only results of reads are cached"),
    ({**READ, "fallbacks": ["nowhere"]}, "falls back to 'nowhere', which is not registered"),
    ({**READ, "fallbacks": ["t0"]}, "falls back to itself"),
    ({**READ, "shadow_of": "nowhere"}, "is a shadow of 'nowhere', which is not registered"),
    ({**READ, "shadow_of": "t0"}, "is a shadow of itself"),
    ({**ACTS, "shadow_of": "other"}, "only reads can be compared"),
    ({"roles": "admin"}, "has roles='admin'"),
    ({"roles": ["admin", "clerk", "admin"]}, "has 'admin' twice in roles"),
    ({"roles": [" "]}, "has an empty name in roles"),
    ({"sensitive_args": ["c"]}, "names 'c' in sensitive_args; its arguments are a, b"),
    ({"sensitive_args": ["a", "a"]}, "has 'a' twice in sensitive_args"),
    ({"identity_args": ["c"]}, "names 'c' in identity_args; its arguments are a, b"),
    ({"identity_args": []}, "has no names in identity_args"),
    ({**READ, "identity_args": ["a"]}, "only reads, so there is no effect for identity_args to tell apart"),
    ({**READ, "undo": print}, "only reads, so there is nothing for undo to take back"),
    ({**READ, "probe": print}, "only reads, so there is nothing for a probe to find out"),
    ({**ACTS, "probe": probe}, "has a probe that takes something else than the idempotency key"),
    ({"output_trust": "yes"}, "has output_trust='yes'"),
    ({"version": ""}, "has version=''"),
    ({"version": 2}, "has version=2: should be a valid string"),
    ({"never_empty": "items["}, "has a never_empty that cannot be read"),
    ({"error_when": "=== 3"}, "has an error_when that cannot be read"),
    ({"error_when": {"code": "TOOL_ERROR"}}, "has error_when[0] without 'when', which it needs"),
    ({"error_when": {"when": "e", "cod": "x"}}, "has no setting 'error_when[0].cod'; did you mean 'code'?"),
    ({"rules": [{"check": "at_most", "arg": "b"}]}, "has rules[0] without 'value', which it needs"),
    ({"rules": {"check": "at_most"}}, "has rules=an object"),
    ({"name": "get order"}, "needs a name of 1 to 64 letters, digits, _ and -, not 'get order'"),
    ({"name": "x" * 65}, "needs a name of 1 to 64 letters"),
    ({"name": "other"}, "is declared twice"),
    ({"timeout": 3}, "has no setting 'timeout'; did you mean 'timeout_s'?"),
    ({"colour": "red"}, "has no setting 'colour'; known: name, description, effect"),
    ({"critical": "very"}, "has critical='very'"),
    ({"args_schema": {"type": "array"}}, "args_schema"),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "said"), FAULTS, ids=[said[:60] for _, said in FAULTS])
def test_each_fault_has_its_sentence(declared: dict[str, Any], said: str) -> None:
    """One row per fault: the tool, what it declares, and what would be right."""
    told = faults_of(declared)
    assert said in told
    assert f"tool {declared.get('name', 't0')!r}" in told


def test_all_faults_of_all_tools_come_in_one_message() -> None:
    """Whoever mends one fault does not find the next one only then."""
    alone = [(declared, said) for declared, said in FAULTS if "name" not in declared and "t0" not in str(declared)]
    told = faults_of(*(declared for declared, _ in alone))
    assert [said for _, said in alone if said not in told] == []
    many = {"timeout_s": 0, "retries": 3, "roles": ["a", "a"], "breaker": {"in_a_row": 99}, "never_empty": "["}
    assert faults_of(many).startswith("5 faults in the declared tools:\n- tool 't0'")


def test_faults_of_several_fields_at_once_leave_the_others_judged() -> None:
    """A field at fault is replaced by its default, so that what is wrong beside it is found in the same look."""
    spec, faults = spec_of({"name": "t", "timeout_s": 0, "effect": "raed", "cache_ttl_s": 5, "owner": "ann"})
    assert len(faults) == 2
    assert (spec.timeout_s, spec.effect, spec.cache_ttl_s, spec.owner) == (8.0, "irreversible", 5, "ann")


def test_long_and_odd_values_are_named_and_not_repeated() -> None:
    """A fault's sentence does not carry a page of what was declared."""
    assert len(faults_of({"effect": "x" * 5_000})) < 300
    assert "has timeout_s=a object" in faults_of({"timeout_s": object()})


def documented() -> str:
    """The page about declaring tools."""
    return (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [ToolSpec, Retry, BreakerPolicy, RateLimit, Repeats, ErrorFlag])
def test_every_setting_is_documented(model: type[ToolSpec]) -> None:
    """docs/tools.md names each setting of a tool, `undo` and `probe` among them, and each check of a rule."""
    text = documented()
    assert [name for name in (*model.model_fields, "undo", "probe", *CHECKS) if f"`{name}`" not in text] == []
