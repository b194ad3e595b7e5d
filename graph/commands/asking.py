"""The questions that a run asks at a terminal, and what is shown of a request before anyone decides."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from graph.commands.editing import as_yaml, edited
from graph.commands.exactly import name_shown, origins_shown, reason_shown, value_shown
from graph.commands.printing import harmless, say
from graph.commands.shared import has_planner, surestep
from graph.commands.terminal import forget_typed
from graph.commands.terms import Votes, told_terms
from nodes.answers import ABOUT_A_PLAN, ABOUT_THE_RUN, ALLOWED
from plans.decisions import ApprovalRequest, Approve, Decision, Reject, RequestKind, Respond, Vote
from plans.wording import in_utc

KEYS = {"approve": "a", "edit": "e", "reject": "r", "respond": "g", "later": "l"}
MEANINGS: dict[RequestKind, dict[str, str]] = {
    "unknown_outcome": {
        "approve": "it has not happened, run it",
        "respond": "it has, give its result",
        "reject": "leave it, skip the step",
    },
    "question": {"respond": "say what to do", "edit": "give a plan of your own", "reject": "end the run"},
    "ticket": {"approve": "try once more", "respond": "say what to do instead", "reject": "end the run"},
    "review": {
        "approve": "run it as it is",
        "edit": "change it",
        "respond": "say what to do instead",
        "reject": "end the run",
    },
    "clarification": {"respond": "answer", "reject": "do not answer"},
    "risk": {"edit": "change its arguments"},
}
"""What the decisions about a request of this kind mean; elsewhere they mean what they are called."""
ASKED_FOR: dict[RequestKind, str] = {
    "question": "what to do",
    "ticket": "what to do instead",
    "review": "what to do instead",
    "clarification": "your answer",
}
"""What is asked for when somebody answers in words; elsewhere it is a result."""


def request_text(request: ApprovalRequest, votes: Sequence[Vote] = ()) -> str:
    """One request as a person should see it before deciding: what would run, with what, why it is asked and of whom,
    what others have said, and until when."""
    terms = [f"  {name}: {text}" for name, text in told_terms(request, votes)]
    return "\n".join(filter(None, (_what_is_asked(request), *terms, _until(request))))


def _until(request: ApprovalRequest) -> str:
    if request.expires_at is None:
        return ""
    if has_expired(request):
        return f"  nobody answered by {in_utc(request.expires_at)}, which counts as a no"
    return f"  no answer by {in_utc(request.expires_at)} counts as a no"


def has_expired(request: ApprovalRequest) -> bool:
    """Whether it is too late to answer."""
    return request.expires_at is not None and request.expires_at <= datetime.now(UTC)


def _what_is_asked(request: ApprovalRequest) -> str:
    meaning = {
        "risk": f"{request.tool}, risk {request.risk}",
        "unknown_outcome": f"{request.tool} may have happened or not",
        "question": "nothing could plan this",
        "ticket": f"{request.tool} has failed, and nothing mends it",
        "review": "a plan to look at",
        "clarification": "a question to you",
    }.get(request.kind, request.tool)
    if request.kind == "review":
        return f"{request.step_id}: {meaning}\n  {_indented(request.reason)}\n\n  {_indented(as_yaml(request.args))}"
    about_run = request.kind in ASKED_FOR
    shown = [
        *([] if request.kind == "clarification" else [("why", reason_shown(request.reason))]),
        *(
            (name_shown(name), value_shown(value) + origins_shown(request, name))
            for name, value in request.args.items()
            if not (about_run and value is None)
        ),
    ]
    width = max(len(name) for name in ("why", *map(name_shown, request.args)))
    indent = "\n" + " " * (width + 4)
    return "\n".join(
        [
            f"{request.step_id}: {meaning}",
            *(f"  {name:<{width}}  {text.replace(chr(10), indent)}" for name, text in shown),
        ]
    )


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n  ")


def go_on(thread: str, toolkits: Sequence[str]) -> str:
    """The command line that goes on with a run whose question nobody answered in time."""
    return f"{surestep('resume', thread, toolkits=toolkits)}    goes on without it"


def answers(request: ApprovalRequest, toolkits: Sequence[str]) -> list[str]:
    """The command lines that answer a request, each with what it means where that is not plain."""
    asked = (request.thread_id, request.step_id)
    words = ("--answer", "TEXT") if request.kind in ASKED_FOR else ("--happened", "RESULT")
    commands = {
        "approve": surestep("approve", *asked, toolkits=toolkits),
        "respond": surestep("approve", *asked, *words, toolkits=toolkits),
        "reject": surestep("reject", *asked, toolkits=toolkits),
    }
    option = ("--plan", "FILE") if request.kind in ABOUT_A_PLAN else ("--args", "JSON")
    commands["edit"] = surestep("edit", *asked, *option, toolkits=toolkits)
    meanings = MEANINGS.get(request.kind, {})
    return [
        f"{commands[word]}    {meanings[word]}" if word in meanings else commands[word] for word in _possible(request)
    ]


def _possible(request: ApprovalRequest) -> list[str]:
    """What can be answered here: words about a plan are for a model, if there is one."""
    words_lead_nowhere = request.kind in ABOUT_THE_RUN and not has_planner()
    return [word for word in ALLOWED[request.kind] if word != "respond" or not words_lead_nowhere]


async def asked_at_terminal(requests: Sequence[ApprovalRequest], votes: Votes) -> dict[str, Decision]:
    """A decision for each request that the person answers now; what is left for later is not in it. `votes` are what
    others have said, by approval id."""
    decisions: dict[str, Decision] = {}
    for request in requests:
        say(f"\n{request_text(request, votes.get(request.approval_id, ()))}")
        decision = await _answer(request)
        if decision is not None:
            decisions[request.approval_id] = decision
    return decisions


async def _answer(request: ApprovalRequest) -> Decision | None:
    """Ask until the answer is one of the words; nothing but such a word decides anything. No more input is "later"."""
    kind = request.kind
    offered = {word: key for word, key in KEYS.items() if word == "later" or word in _possible(request)}
    meanings = MEANINGS.get(kind, {})
    question = ", ".join(f"[{key}] {meanings.get(word, word)}" for word, key in offered.items())
    while (answer := await _line(f"  {question}: ")) is not None:
        match next((word for word, key in offered.items() if answer.lower() in (word, key)), None):
            case "approve":
                return Approve()
            case "reject" if (why := await _line("  why (may be empty): ")) is not None:
                return Reject(message=why)
            case "respond" if result := await _line(f"  {ASKED_FOR.get(kind, 'its result, JSON or text')}: "):
                return Respond(result)
            case "edit" if changed := await edited(request):
                return changed
            case "later":
                return None
        say("  that is none of the answers; nothing is decided")
    return None


async def _line(question: str) -> str | None:
    """One line that is typed now, without blocking what else goes on; None where no more input comes."""
    forget_typed()
    sys.stderr.write(question)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()
    loop.add_reader(0, lambda: None if typed.done() else typed.set_result(os.read(0, 65_536)))
    try:
        line = await typed
    finally:
        loop.remove_reader(0)
    if not line:
        say("")
        return None
    return harmless(line.decode("utf-8", "replace")).strip()
