"""A scripted model behind a real OpenAI-compatible HTTP server on this machine: answers in order, or by the prompt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Question = dict[str, Any]
Answer = Response | Callable[[Question], Response]


def completion(
    text: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    prompt_tokens: int = 11,
    completion_tokens: int = 7,
) -> Response:
    """A chat completion with exactly these parts."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
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


class ScriptedModel:
    """Gives its answers in order, the last one again and again; remembers what it was asked."""

    def __init__(self, server: HTTPServer) -> None:
        self.base_url = server.url_for("/v1")
        self.questions: list[Question] = []
        self.headers: list[dict[str, str]] = []
        self.asked_at: list[float] = []
        self._answers: list[Answer] = []
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self._respond)

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
        return answer if isinstance(answer, Response) else answer(question)
