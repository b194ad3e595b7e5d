"""What an entry of the audit tells a person: who, and what, in words that hold neither arguments nor results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plans.values import JSON

_WORDS = ("tool", "code", "status", "source", "revision", "verdict", "trigger", "result", "why", "how", "hit", "kind")
"""Members of a row's body that say what it is about: names and codes, and never arguments, results or texts."""
_INSIDE = ("request", "verdict", "failure", "plan", "decision", "hit")
"""Members whose own members are looked at too."""


def who(kind: str, body: Mapping[str, JSON]) -> str | None:
    """Who has decided; only of what a person decides."""
    by = body.get("by")
    return by if kind == "decision" and isinstance(by, str) else None


def what(kind: str, body: Mapping[str, JSON]) -> str:
    """A row of the journal in a few words, such as `send APPROVED`."""
    if kind == "draft":
        return f"{body.get('source')}: {_faults(body)}"
    called = str(body["call"]).partition("|")[0] if "output" in body and "call" in body else ""
    found = [called, *_words(body), *(word for name in _INSIDE for word in _words(_object(body.get(name))))]
    if kind == "decision":
        found.append(str(_object(body.get("decision")).get("type", "")))
    if "output" in body:
        found.append(str(_object(body["output"]).get("output_ref", ""))[:19])
    if "plan" in body:
        plan = _object(body.get("plan"))
        found.append(f"{len(plan.get('steps', ()))} steps")
    return " ".join(dict.fromkeys(word for word in found if word))


def _words(body: Mapping[str, Any]) -> list[str]:
    return [str(body[name]) for name in _WORDS if isinstance(body.get(name), str | int) and body[name] != ""]


def _object(value: JSON) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _faults(body: Mapping[str, Any]) -> str:
    if body.get("valid"):
        return "valid"
    codes = [str(fault.get("code")) for fault in body.get("faults", ()) if isinstance(fault, dict)]
    return f"refused: {', '.join(dict.fromkeys(codes))}"
