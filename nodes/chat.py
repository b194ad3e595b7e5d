"""What a chat client reads while a run waits: everything that is asked, as one message of the run's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from plans.clarification import Question
from plans.decisions import ApprovalRequest
from plans.values import JSON, printable, sha256_of

if TYPE_CHECKING:
    from nodes.session import Session

LONGEST = 300
"""Characters of one argument that stand in a message; all of it is in the interrupt."""
# Chat clients show Markdown: a picture in a value would be fetched, and a link could say that it leads elsewhere.
_PLAIN = re.compile(r"[\w .,:;'\"()?@%+-]*")


def asking(session: Session, state: Mapping[str, Any]) -> dict[str, Any]:
    """The update that tells a chat what is asked; nothing for who sent no messages. Asked again it is the same one."""
    waiting = session.fold.waiting()
    if not state.get("messages") or not waiting:
        return {}
    named = sha256_of([request.approval_id for request in waiting])[:12]
    return {"messages": [AIMessage(asked_text(waiting), id=f"{session.head_run_id}-asks-{named}")]}


def asked_text(requests: Sequence[ApprovalRequest]) -> str:
    """What is asked, in words for a chat."""
    return "\n\n".join("\n".join(_lines(request)) for request in requests)


def _lines(request: ApprovalRequest) -> Iterator[str]:
    match request.kind:
        case "clarification":
            yield from _question(Question.of(request.args))
        case "review":
            yield f"{request.reason}:"
            yield from (f"{place}. {_does(step)}" for place, step in enumerate(request.args.get("steps") or [], 1))
            yield "Approve it, change it, or say what should be another way."
        case "risk":
            yield f"May {request.tool} run (step {request.step_id})? {request.reason}."
            yield from (f"- {_short(name)}: {_short(value)}" for name, value in request.args.items())
        case _:
            yield f"{request.step_id}: {request.reason}"


def _question(question: Question) -> Iterator[str]:
    yield question.text
    if question.kind == "choice":
        yield from (f"- {choice}" for choice in question.choices)
    elif question.kind == "confirmation":
        yield "(yes or no)"


def _does(step: Mapping[str, JSON]) -> str:
    what = step.get("title") or step.get("instruction") or step.get("reason") or step.get("id")
    return f"{_short(what)} ({step.get('tool') or step.get('action')})"


def _short(value: JSON) -> str:
    """A value on one line, as code where it could be anything else than words."""
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    cut = printable(text[:LONGEST], LONGEST) + (" …" if len(text) > LONGEST else "")
    return cut if _PLAIN.fullmatch(text) else f"`{cut.replace('`', chr(39))}`"
