"""Requests to people as LangChain's human-in-the-loop inboxes show them, and the decisions in what such an inbox sends.

A decision is bound by the id of its request, where it names it, or by its place in the list that was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ValidationError

from nodes.answers import ALLOWED
from plans.clarification import Question
from plans.decisions import DECISION, ApprovalRequest, Decision
from plans.errors import ApprovalConflict, MalformedDecision, StaleDecision, UnknownApproval
from plans.values import dotted, printable

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

BINDING = ("approval_id", "args_sha256")
"""What a decision may say of its request, beside what LangChain's says."""


@dataclass(frozen=True, slots=True)
class Said:
    """One decision of an answer, or why it is none. `request` is what it is about, as far as that can be told."""

    request: ApprovalRequest | None
    decision: Decision | None = None
    why_not: ApprovalConflict | None = None
    args_sha256: str | None = None


def inbox_request(requests: Sequence[ApprovalRequest], refused: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The requests in the shape that agent inboxes read, with what binds each of them and what people decide by.
    `refused` says what of the last answer was not taken, and why."""
    shown: dict[str, Any] = {
        "action_requests": [_action(request) for request in requests],
        "review_configs": [
            {"action_name": request.tool, "allowed_decisions": list(ALLOWED[request.kind])} for request in requests
        ],
    }
    return {**shown, "refused": list(refused)} if refused else shown


def _action(request: ApprovalRequest) -> dict[str, Any]:
    more = request.model_dump(mode="json", exclude={"tool", "args", "attempt"})
    return {
        "name": request.tool,
        "args": request.args,
        "description": f"{request.step_id}: {request.reason}",
        **more,
        **({"answer_schema": Question.of(request.args).schema} if request.kind == "clarification" else {}),
    }


def read_answer(
    requests: Sequence[ApprovalRequest], answer: Any, too_early: Callable[[ApprovalRequest], bool] = lambda _: False
) -> list[Said]:
    """What an inbox's answer says: `{"decisions": […]}` in the order of the requests, or naming them, or `{"decisions":
    {approval_id: …}}`. Nothing but exact decisions counts, and none stands for another: a list of another length
    decides nothing, a request that is named twice is not decided. By its place no request is decided of which
    `too_early` says that the answer was sent before it was shown.
    """
    if answer in (None, {}):  # whoever goes on with a run has nothing to say
        return []
    given = answer.get("decisions") if isinstance(answer, Mapping) and len(answer) == 1 else None
    if isinstance(given, Mapping):
        given = [{**item, "approval_id": key} if isinstance(item, Mapping) else item for key, item in given.items()]
    if not isinstance(given, list) or not given:
        return [_malformed(None, 'an answer is {"decisions": […]}, with one decision for each request, in their order')]
    names = [item.get("approval_id") if isinstance(item, Mapping) else None for item in given]
    if None in names and any(name is not None for name in names):
        return [_malformed(None, "either every decision names its request, or none does")]
    if None in names and len(given) != len(requests):
        return [_malformed(None, f"{len(given)} decisions were sent, and {len(requests)} requests wait")]
    known = {request.approval_id: request for request in requests}
    return [
        _by_name(known, item, names) if name is not None else _by_place(requests[place], item, too_early)
        for place, (name, item) in enumerate(zip(names, given, strict=True))
    ]


def _by_name(known: Mapping[str, ApprovalRequest], item: Mapping[str, Any], names: Sequence[Any]) -> Said:
    name = item["approval_id"]
    if not isinstance(name, str) or (request := known.get(name)) is None:
        return Said(None, why_not=UnknownApproval(f"{printable(str(name))!r} is none of the requests that wait here"))
    return read_decision(request, item) if names.count(name) == 1 else _malformed(request, f"{name} is decided twice")


def _by_place(request: ApprovalRequest, item: Any, too_early: Callable[[ApprovalRequest], bool]) -> Said:
    said = read_decision(request, item)
    if said.decision is None or not too_early(request):
        return said
    what = f"{request.tool} of step {request.step_id}"
    why = f"the answer was sent before {what} was shown, so it is about something else; look at it, then decide"
    return Said(request, why_not=StaleDecision(why))


def read_decision(request: ApprovalRequest, item: Any) -> Said:
    """One decision about this request, as a client writes it; `why_not` where it is none."""
    if not isinstance(item, Mapping):
        return _malformed(request, "a decision is an object with a `type`")
    said = {key: value for key, value in item.items() if key not in BINDING}
    if said.get("type") == "edit" and "edited_action" in said:
        action = said.pop("edited_action")
        if not isinstance(action, Mapping) or set(action) != {"name", "args"} or "args" in said:
            return _malformed(request, "an edit has an `edited_action` with a `name` and `args`")
        if action["name"] != request.tool:
            return _malformed(request, f"an edit changes arguments; the tool stays {request.tool}")
        said["args"] = action["args"]
    try:
        decision = DECISION.validate_python(said)
    except ValidationError as error:
        return _malformed(request, "; ".join(_in_words(request, each) for each in error.errors()))
    seen = item.get("args_sha256")
    if seen is not None and not isinstance(seen, str):
        return _malformed(request, "args_sha256 is the hash that was shown")
    return Said(request, decision, args_sha256=seen)


def _in_words(request: ApprovalRequest, error: ErrorDetails) -> str:
    place = dotted(error["loc"][1:])
    match error["type"]:
        case "union_tag_invalid" | "union_tag_not_found":
            return f"its `type` has to be one of {', '.join(ALLOWED[request.kind])}"
        case "missing":
            return f"`{place}` is missing"
        case "extra_forbidden":
            return f"it has no `{printable(place)}`"
        case _:
            return f"`{place}` is not what it should be"


def _malformed(request: ApprovalRequest | None, what: str) -> Said:
    about = f"no decision about {request.tool} of step {request.step_id}" if request else "no decision"
    return Said(request, why_not=MalformedDecision(f"{about}: {what}"))


def sent_at(config: Mapping[str, Any]) -> float | None:
    """When a server took this invocation in, in seconds since 1970; None where that is not known. LangGraph servers
    name each by a UUID of version 7, which begins with the time."""
    name = (config.get("metadata") or {}).get("run_id")
    try:
        found = UUID(str(name))
    except ValueError:
        return None
    return (found.int >> 80) / 1000 if found.version == 7 else None
