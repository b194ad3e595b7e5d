"""A scripted model behind a real OpenAI-compatible HTTP server on this machine: answers in order, or by the prompt."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Question = dict[str, Any]
Answer = Response | Callable[[Question], Response]
Chunk = dict[str, Any] | str | float

_numbers = itertools.count(1)


def completion(
    text: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    calls: Iterable[tuple[str, str]] = (),
    prompt_tokens: int = 11,
    completion_tokens: int = 7,
) -> Response:
    """A chat completion with exactly these parts; `calls` are functions called, by name and arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if called := [_call(number, *call) for number, call in enumerate(calls)]:
        message["tool_calls"] = called
    return as_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "scripted-1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
    )


def _call(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def as_json(body: Any, status: int = 200, **headers: str) -> Response:
    """Any JSON body under any status; `Retry_After="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps(body), status, named, content_type="application/json")


def refused(status: int, message: str = "no", code: str | None = None, **headers: str) -> Response:
    """An error as OpenAI's API words it."""
    return as_json({"error": {"message": message, "type": "error", "code": code}}, status, **headers)


def after(seconds: float, answer: Response) -> Callable[[Question], Response]:
    """The answer, so many seconds late."""

    def late(_: Question) -> Response:
        time.sleep(seconds)
        return answer

    return late


def delta(
    text: str | None = None,
    *,
    finish_reason: str | None = None,
    refusal: str | None = None,
    calls: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    """One chunk of a streamed completion."""
    said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal, "tool_calls": list(calls) or None}
    said = {name: value for name, value in said.items() if value is not None}
    choice = {"index": 0, "delta": said, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted-1", "choices": [choice]}


def streamed(*chunks: Chunk, done: bool = True) -> Callable[[Question], Response]:
    """A stream of exactly these events: a chunk, a text that stands in the place of one, or seconds of silence."""
    return lambda _: _stream(chunks, done=done)


def _stream(chunks: Iterable[Chunk], *, done: bool = True) -> Response:
    def events() -> Iterator[str]:
        for chunk in chunks:
            if isinstance(chunk, float):
                time.sleep(chunk)
            else:
                yield f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n"
        if done:
            yield "data: [DONE]\n\n"

    return Response(events(), content_type="text/event-stream")


def as_stream(body: dict[str, Any]) -> Response:
    """A whole completion as the chunks of one: its text in halves, and its usage at the end."""
    [choice] = body["choices"]
    message = choice["message"]
    text = message["content"] or ""
    calls = [{**call, "index": number} for number, call in enumerate(message.get("tool_calls", ()))]
    chunks = [delta(part) for part in (text[: len(text) // 2], text[len(text) // 2 :])]
    if message["refusal"]:
        chunks.append(delta(refusal=message["refusal"]))
    for call in calls:
        arguments = call["function"]["arguments"]
        begun = {**call, "function": {**call["function"], "arguments": arguments[:5]}}
        chunks.append(delta(calls=[begun]))
        chunks.append(delta(calls=[{"index": call["index"], "function": {"arguments": arguments[5:]}}]))
    chunks.append(delta(finish_reason=choice["finish_reason"]))
    usage = {**delta(), "choices": [], "usage": body["usage"]}
    return _stream([*chunks, usage])


class ScriptedModel:
    """Gives its answers in order, the last one again and again; remembers what it was asked.

    Each has an address of its own: what one endpoint understands is remembered by address.
    """

    def __init__(self, server: HTTPServer) -> None:
        path = f"/{next(_numbers)}/v1"
        self.base_url = server.url_for(path)
        self.questions: list[Question] = []
        self.headers: list[dict[str, str]] = []
        self.asked_at: list[float] = []
        self._answers: list[Answer] = []
        server.expect_request(f"{path}/chat/completions", method="POST").respond_with_handler(self._respond)

    def answers(self, *answers: Answer | str) -> None:
        """Script the next answers; a text is a completion with that text."""
        self._answers = [completion(answer) if isinstance(answer, str) else answer for answer in answers]

    def prompt(self, index: int = -1) -> str:
        """All text of one question, rules and task."""
        return "\n".join(message["content"] for message in self.questions[index]["messages"])

    def _respond(self, request: Request) -> Response:
        self.asked_at.append(time.monotonic())
        question = request.get_json()
        self.questions.append(question)
        self.headers.append(dict(request.headers))
        answer = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        response = answer if isinstance(answer, Response) else answer(question)
        return _in_chunks(response) if question.get("stream") else response


def _in_chunks(response: Response) -> Response:
    """A whole completion as a stream; anything else as it is."""
    if response.status_code != 200 or response.is_streamed:
        return response
    try:
        body = response.get_json(silent=True)
    except ValueError:
        return response
    return as_stream(body) if isinstance(body, dict) and body.get("object") == "chat.completion" else response
