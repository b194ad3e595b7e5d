"""Journal rows as the nodes write them, for the tests of what is folded from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.state import RunHead, Verdict
from plans.decisions import ApprovalRequest
from plans.failure import Failure, VerdictName
from plans.limits import Limits
from plans.plan import Plan, Step
from plans.values import sha256_of

Row = tuple[str, str | None, int, Mapping[str, Any]]

OUTPUT = {"output_ref": "sha256-0", "size": 1, "sha256": "0", "media_type": "application/json"}


def a_step(step_id: str, *after: str, **more: Any) -> Step:
    """A stored step."""
    fields: dict[str, Any] = {"id": step_id, "tool": "look", "depends_on": after, **more}
    return Step(**{name: value for name, value in fields.items() if value is not None})


def a_plan(*steps: Step, revision: int = 1) -> Plan:
    """A stored plan of these steps."""
    return Plan(plan_id="p", revision=revision, goal="a test", steps=steps)


def begun(limits: Limits | None = None) -> Row:
    """The first row of a run."""
    head = RunHead(run_id="r", thread_id="t", request_id="q", goal="a test", limits=limits or Limits())
    return "run", None, 0, {"head": head.model_dump(mode="json")}


def planned(plan: Plan, purpose: str = "first", answers: Sequence[str] = ()) -> Row:
    """A revision."""
    return "plan", None, 0, {"plan": plan.model_dump(mode="json"), "purpose": purpose, "answers": list(answers)}


def done(unit: str, attempt: int = 1, tainted_by: Sequence[str] = ()) -> Row:
    """An outcome that is a result."""
    return "outcome", unit, attempt, {"output": OUTPUT, "elapsed_s": 0.5, "tainted_by": list(tainted_by)}


def failed(unit: str, attempt: int = 1, code: str = "CONFLICT", *, happened: bool = False) -> Row:
    """An outcome that is a failure, or an unknown one."""
    failure = Failure(code=code, message=f"{unit} failed", step_id=unit, attempt=attempt).model_dump()
    kind = "unknown" if code == "UNKNOWN_OUTCOME" else "outcome"
    return kind, unit, attempt, {"failure": failure, "elapsed_s": 0.5, "happened": happened}


def refused(unit: str, attempt: int = 1, code: str = "LIMIT_TIME") -> Row:
    """A step run that was not allowed to start."""
    failure = Failure(code=code, message=f"{unit} was refused", step_id=unit, attempt=attempt)
    return "refusal", unit, attempt, {"failure": failure.model_dump()}


def intended(unit: str, attempt: int = 1, effect: str = "send|1") -> Row:
    """An effect that is about to happen."""
    body = {"tool": "send", "args": {}, "call": f"send|{effect}", "key": "k", "key_version": 1, "effect_key": effect}
    return "intent", unit, attempt, body


def decided(unit: str, attempt: int, verdict: VerdictName, code: str = "CONFLICT", **more: Any) -> Row:
    """A verdict on an outcome."""
    made = Verdict(verdict=verdict, step_id=unit, attempt=attempt, code=code, reason="because", **more)
    return "verdict", unit, attempt, {"verdict": made.model_dump()}


def asked(unit: str, kind: str = "risk", approval_id: str | None = None, attempt: int = 0) -> Row:
    """A question to a person."""
    request = ApprovalRequest.model_validate(
        {
            "approval_id": approval_id or f"ask-{unit}",
            "run_id": "r",
            "thread_id": "t",
            "step_id": unit,
            "tool": "send",
            "args": {},
            "args_sha256": sha256_of({}),
            "risk": "high",
            "reason": "risky",
            "kind": kind,
            "attempt": attempt,
            "created_at": "2026-11-29T12:00:00Z",
        }
    )
    return "asked", unit, attempt, {"request": request.model_dump(mode="json")}


def answered(unit: str, decision: Mapping[str, Any], kind: str = "risk", **more: Any) -> Row:
    """A person's decision."""
    body = {
        "approval_id": f"ask-{unit}",
        "kind": kind,
        "action": f"{unit}|send|1",
        "call": "send|1",
        "tool": "send",
        "decision": dict(decision),
        "by": "ann",
        **more,
    }
    return "decision", unit, 0, body
