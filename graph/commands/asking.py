"""The questions that a run asks at a terminal, and what is shown of a request before anyone decides."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import sys
from collections.abc import Sequence

from graph.commands.printing import harmless, say
from graph.commands.terminal import forget_typed
from nodes.answers import ALLOWED
from plans.decisions import ApprovalRequest, Approve, Decision, Reject, RequestKind, Respond

WORDS: dict[str, tuple[str, str]] = {
    "approve": ("a", "approve"),
    "reject": ("r", "reject"),
    "respond": ("g", "give its result"),
    "later": ("l", "later"),
}
LONGEST_VALUE = 4_000
"""Characters of one argument that are shown; more is never decided about unseen, but counted and named."""


def request_text(request: ApprovalRequest) -> str:
    """One request as a person should see it before deciding: what would run, with what, and why it is asked."""
    meaning = {
        "risk": f"{request.tool}, risk {request.risk}",
        "unknown_outcome": f"{request.tool} may have happened or not. approve: it has NOT, run it; "
        "approve --happened RESULT: it has; reject: leave it, skip the step",
    }.get(request.kind, request.tool)
    width = max(len(name) for name in ("why", *request.args))
    shown = [
        ("why", " ".join(request.reason.split())),
        *((name, _value(value)) for name, value in request.args.items()),
    ]
    indent = "\n" + " " * (width + 4)
    return "\n".join(
        [
            f"{request.step_id}: {meaning}",
            *(f"  {name:<{width}}  {text.replace(chr(10), indent)}" for name, text in shown),
        ]
    )


def _value(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    if len(text) > LONGEST_VALUE:
        text = f"{text[:LONGEST_VALUE]} … ({len(text):,} characters; all of it: surestep approvals --json)"
    return text


async def asked_at_terminal(requests: Sequence[ApprovalRequest]) -> dict[str, Decision]:
    """A decision for each request that the person answers now; what is left for later is not in it."""
    decisions: dict[str, Decision] = {}
    for request in requests:
        say(f"\n{request_text(request)}")
        decision = await _answer(request.kind)
        if decision is not None:
            decisions[request.approval_id] = decision
    return decisions


async def _answer(kind: RequestKind) -> Decision | None:
    """Ask until the answer is one of the words; nothing but such a word decides anything."""
    offered = [word for word in WORDS if word == "later" or word in ALLOWED[kind]]
    question = ", ".join(f"[{WORDS[word][0]}] {WORDS[word][1]}" for word in offered)
    while True:
        answer = await _line(f"  {question}: ")
        match next((word for word in offered if answer.lower() in {word, *WORDS[word]}), None):
            case "approve":
                return Approve()
            case "reject":
                return Reject(message=await _line("  why (may be empty): "))
            case "respond":
                return Respond(await _line("  its result, JSON or text: "))
            case "later":
                return None
        say("  that is none of the answers; nothing is decided")


async def _line(question: str) -> str:
    """One line that is typed now, without blocking what else goes on. No more input means later."""
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
        return "later"
    return harmless(line.decode("utf-8", "replace")).strip()


def who() -> str:
    """Who decides, for the record."""
    try:
        return f"command line: {getpass.getuser()}"
    except (KeyError, OSError):
        return "command line"
