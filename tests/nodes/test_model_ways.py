"""Every way in which a model's answer goes wrong: its class, its next move, how often it is asked, what it costs."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from werkzeug import Response

from nodes import model_errors as errors
from nodes.answered import unusable
from nodes.model_errors import ModelFailed, NextMove
from nodes.model_modes import MODES, Mode
from nodes.model_settings import ModelSettings, Price
from nodes.models import Model, ModelAnswer
from nodes.prompts import Rendered
from tests.nodes.model_server import (
    Answer,
    Chunk,
    Question,
    ScriptedModel,
    as_json,
    completion,
    delta,
    refused,
    streamed,
)

PROMPT = Rendered("r" * 396, "t" * 400, "0" * 64)
"""Estimated at 200 tokens."""
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
PIECE = delta("x" * 40)
"""Estimated at 11 tokens."""
PAUSED: tuple[Chunk, ...] = (PIECE, 0.1)


def endless_line(_: Question) -> Response:
    """A stream whose first event does not end."""
    return Response((b"x" * 1_000_000 for _ in range(20)), content_type="text/event-stream")


def other_answer(text: str) -> dict[str, Any]:
    """A chunk of a second answer that nobody has asked for."""
    chunk = delta(text)
    chunk["choices"][0]["index"] = 1
    return chunk


@dataclass(frozen=True)
class Way:
    """One way for an answer to go wrong. `spent` is (requests, prompt tokens, completion tokens, of these estimated);
    `raw` is a part of the raw text that is kept."""

    name: str
    answer: Answer
    kind: type[ModelFailed]
    code: str
    move: NextMove
    spent: tuple[int, int, int, int]
    raw: str = ""


WAYS = (
    Way("cut at the limit", completion('{"a": ', finish_reason="length"), errors.AnswerCut, "MODEL_ANSWER_INVALID",
        "redraft", (1, 11, 7, 0), '{"a": '),
    Way("stream without its end", streamed(PIECE), errors.StreamCut, "UNAVAILABLE", "ask_again", (3, 600, 33, 633),
        "xxx"),
    Way("stream that just ends", streamed(PIECE, done=False), errors.StreamCut, "UNAVAILABLE", "ask_again",
        (3, 600, 33, 633), "xxx"),
    Way("stream of nothing", streamed(), errors.StreamCut, "UNAVAILABLE", "ask_again", (3, 0, 0, 0)),
    Way("refused", completion(None, refusal="I will not."), errors.AnswerRefused, "MODEL_REFUSED", "give_up",
        (1, 11, 7, 0), "I will not."),
    Way("filtered", completion('{"a"', finish_reason="content_filter"), errors.AnswerFiltered, "MODEL_REFUSED",
        "give_up", (1, 11, 7, 0), '{"a"'),
    Way("empty", completion(" \n"), errors.AnswerEmpty, "MODEL_ANSWER_INVALID", "redraft", (1, 11, 7, 0)),
    Way("another function", completion(None, calls=[("get_order", "{}")]), errors.MalformedCall,
        "MODEL_ANSWER_INVALID", "redraft", (1, 11, 7, 0), "{}"),
    Way("two calls", completion(None, calls=[("answer", '{"a":1}'), ("answer", '{"a":2}')]), errors.SeveralCalls,
        "MODEL_ANSWER_INVALID", "redraft", (1, 11, 7, 0), '{"a":1}\n{"a":2}'),
    Way("rate limited", refused(429, "slower", Retry_After="0.01"), errors.RateLimited, "RATE_LIMITED", "wait",
        (3, 0, 0, 0), "slower"),
    Way("out of quota", refused(429, "pay", code="insufficient_quota"), errors.QuotaSpent, "MODEL_NOT_CONFIGURED",
        "give_up", (1, 0, 0, 0), "pay"),
    Way("silent", streamed(1.0, delta("late", finish_reason="stop")), errors.NoFirstToken, "TIMEOUT", "ask_again",
        (3, 600, 0, 600)),
    Way("endless", streamed(*PAUSED * 40), errors.NotInTime, "TIMEOUT", "give_up", (1, 200, 81, 281)),
    Way("key refused", refused(401, "bad key"), errors.KeyRefused, "MODEL_NOT_CONFIGURED", "give_up", (1, 0, 0, 0),
        "bad key"),
    Way("no such model", refused(404, "what?"), errors.ModelUnknown, "MODEL_NOT_CONFIGURED", "give_up", (1, 0, 0, 0),
        "what?"),
    Way("prompt too long", refused(400, "the request exceeds the available context size (n_ctx 2048)"),
        errors.PromptTooLong, "MODEL_REFUSED", "shorten", (1, 0, 0, 0), "n_ctx"),
    Way("request refused", refused(400, "no such thing"), errors.RequestRefused, "MODEL_REFUSED", "give_up",
        (1, 0, 0, 0), "no such thing"),
    Way("broken server", refused(500, "boom"), errors.ServerFailed, "UNAVAILABLE", "ask_again", (3, 0, 0, 0), "boom"),
    Way("error in the middle", streamed(PIECE, {"error": {"message": "overloaded"}}), errors.ServerFailed,
        "UNAVAILABLE", "ask_again", (3, 600, 33, 633), "overloaded"),
    Way("corrupt body", Response('{"choices": [{"ind', content_type="application/json"), errors.BodyCorrupt,
        "MODEL_ANSWER_INVALID", "ask_again", (3, 0, 0, 0), '[{"ind'),
    Way("corrupt chunk", streamed(PIECE, '{"choices": [{'), errors.StreamCorrupt, "UNAVAILABLE", "ask_again",
        (3, 600, 33, 633), '{"choices": [{'),
    Way("no completion", as_json({"hello": "world"}), errors.NoCompletion, "MODEL_ANSWER_INVALID", "give_up",
        (1, 0, 0, 0), "hello"),
    Way("error with 200", as_json({"error": {"message": "overloaded", "code": 503}}), errors.ServerFailed,
        "UNAVAILABLE", "ask_again", (3, 0, 0, 0), "overloaded"),
    Way("failed in its own words", streamed(PIECE, delta(finish_reason="error")), errors.ServerFailed, "UNAVAILABLE",
        "ask_again", (3, 600, 33, 633), "xxx"),
    Way("half a character", streamed(delta("\ud83d"), delta("x" * 37, finish_reason="stop")), errors.StreamCorrupt,
        "UNAVAILABLE", "ask_again", (3, 600, 30, 630)),
    Way("endless in short time", streamed(*[delta("x" * 500_000)] * 5), errors.AnswerTooLong, "MODEL_ANSWER_INVALID",
        "give_up", (1, 200, 625_001, 625_201), "xxx"),
    Way("endless line", endless_line, errors.AnswerTooLong, "MODEL_ANSWER_INVALID", "give_up", (1, 0, 0, 0), "xxx"),
    Way("whole and endless", Response(b'{"choices": [' + b"x" * 9_000_000, content_type="application/json"),
        errors.AnswerTooLong, "MODEL_ANSWER_INVALID", "give_up", (1, 0, 0, 0), "xxx"),
    Way("no such encoding", Response(b"data: {}", headers={"Content-Encoding": "gzip"},
        content_type="text/event-stream"), errors.StreamCorrupt, "UNAVAILABLE", "ask_again", (3, 0, 0, 0)),
    Way("two answers", streamed(delta("yes"), other_answer("no"), delta(finish_reason="stop")), errors.SeveralCalls,
        "MODEL_ANSWER_INVALID", "redraft", (1, 200, 2, 202), "yes"),
    Way("no money", refused(402, "Insufficient Balance"), errors.QuotaSpent, "MODEL_NOT_CONFIGURED", "give_up",
        (1, 0, 0, 0), "Balance"),
    Way("filtered prompt", refused(400, "the prompt was filtered", code="content_filter"), errors.RequestRefused,
        "MODEL_REFUSED", "give_up", (1, 0, 0, 0), "was filtered"),
    Way("foreign stream", streamed('{"hello": "world"}'), errors.StreamCut, "UNAVAILABLE", "ask_again",
        (3, 600, 0, 600)),
)  # fmt: skip


@pytest.fixture
async def hasty(endpoint: ScriptedModel) -> AsyncIterator[Model]:
    """A door with little patience, to a model at 10 per million prompt tokens and 20 per million others."""
    settings = ModelSettings(
        "m", endpoint.base_url, "k", timeout_s=1.5, first_token_s=0.4, backoff_s=0.01, price=Price(10.0, 20.0)
    )
    async with Model(settings) as model:
        await model._connected()  # what importing the client takes is not the model's time
        yield model


async def failure(model: Model, **more: Any) -> ModelFailed:
    """How a question fails: on its way, or by an answer that is none."""
    try:
        answer = await model.ask(PROMPT, **more)
    except ModelFailed as failed:
        return failed
    found = unusable(answer)
    assert found is not None
    return found


@pytest.mark.parametrize("way", [pytest.param(way, id=way.name) for way in WAYS])
async def test_each_way_has_its_class_its_next_move_and_its_price(
    hasty: Model, endpoint: ScriptedModel, way: Way
) -> None:
    """Through real HTTP: what it is, whether it is asked again, what it has cost, and the raw text, which is told to
    nobody."""
    endpoint.answers(way.answer)
    failed = await failure(hasty)
    assert (type(failed), failed.code, failed.next_move) == (way.kind, way.code, way.move)
    spent = failed.spent
    counted = (spent.requests, spent.prompt_tokens, spent.completion_tokens, spent.estimated_tokens)
    if way.name == "endless":  # how much came in time is the machine's matter
        assert (spent.requests, spent.prompt_tokens) == (1, 200)
        assert 11 <= spent.completion_tokens == spent.estimated_tokens - 200
    else:
        assert counted == way.spent
    assert len(endpoint.questions) == spent.requests
    assert spent.cost == pytest.approx((10 * spent.prompt_tokens + 20 * spent.completion_tokens) / 1e6)
    assert way.raw in failed.raw
    if way.kind not in (errors.AnswerRefused, errors.MalformedCall):  # these quote a part
        assert not way.raw or way.raw not in failed.message


async def test_a_refused_connection_is_unreachable(hasty: Model) -> None:
    """Where nobody listens there is nothing to count but the tries."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with Model(replace(hasty.settings, base_url=f"http://127.0.0.1:{port}/v1")) as model:
        failed = await failure(model)
    assert (type(failed), failed.code, failed.next_move) == (errors.Unreachable, "UNAVAILABLE", "ask_again")
    assert (failed.spent.requests, failed.spent.prompt_tokens) == (3, 0)


def test_every_class_of_failure_is_met_here() -> None:
    """A new way to fail needs a row; what is abstract has none."""
    met = {way.kind for way in WAYS} | {errors.Unreachable}
    known = {kind for kind in _below(ModelFailed) if kind.__module__ == errors.__name__}
    concrete = {kind for kind in known if not kind.__name__.startswith("_")}
    assert concrete - met == {errors.NotUsable, errors.AnswerUnusable}


def _below(kind: type[ModelFailed]) -> set[type[ModelFailed]]:
    return {kind for child in kind.__subclasses__() for kind in (child, *_below(child))}


async def test_what_passes_is_answered_and_its_failures_are_counted(hasty: Model, endpoint: ScriptedModel) -> None:
    """A stream that broke, then an answer: the answer's count holds both."""
    endpoint.answers(streamed(PIECE), completion("yes"))
    answer = await hasty.ask(PROMPT)
    assert (answer.text, answer.requests) == ("yes", 2)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.estimated_tokens) == (211, 18, 211)


def answering(mode: Mode, **parts: Any) -> Response:
    """An answer as a model gives it in a mode."""
    text = parts.pop("text", '{"a": 1}')
    return completion(None, calls=[("answer", text)], **parts) if mode == "tools" else completion(text, **parts)


def only(mode: Mode, status: int, message: str) -> Answer:
    """An endpoint that understands this mode and looser ones."""

    def respond(question: Question) -> Response:
        asked: Mode = "json_schema" if "response_format" in question else "tools" if "tools" in question else "text"
        return refused(status, message) if MODES.index(asked) < MODES.index(mode) else answering(asked)

    return respond


@pytest.mark.parametrize(
    ("status", "message"), [(400, "unknown field"), (422, "'response_format' is not supported"), (501, "tools: no")]
)
@pytest.mark.parametrize("mode", MODES)
async def test_an_endpoint_is_probed_once(endpoint: ScriptedModel, mode: Mode, status: int, message: str) -> None:
    """Whatever words it refuses a mode with: the next looser one is asked for, which counts as requests and is known
    from then on to everybody in this process."""
    endpoint.answers(only(mode, status, message))
    settings = ModelSettings("m", endpoint.base_url, "k")
    refusals = MODES.index(mode)
    async with Model(settings) as model, Model(settings) as another:
        first = await model.ask(PROMPT, schema=SCHEMA)
        second = await another.ask(PROMPT, schema=SCHEMA)
    assert (first.text, first.mode, first.requests) == ('{"a": 1}', mode, 1 + refusals)
    assert (second.text, second.mode, second.requests) == ('{"a": 1}', mode, 1)
    assert len(endpoint.questions) == 2 + refusals


async def test_what_is_refused_in_every_mode_is_not_the_mode(hasty: Model, endpoint: ScriptedModel) -> None:
    """Nothing is remembered of an endpoint that refuses the question whatever its shape."""
    endpoint.answers(refused(400, "the moon is in the wrong house"))
    assert isinstance(await failure(hasty, schema=SCHEMA), errors.RequestRefused)
    assert len(endpoint.questions) == 3
    endpoint.answers('{"a": 1}')
    assert (await hasty.ask(PROMPT, schema=SCHEMA)).mode == "json_schema"


async def test_a_prompt_that_is_too_long_is_too_long_in_every_mode(hasty: Model, endpoint: ScriptedModel) -> None:
    """It is not asked again without the schema."""
    endpoint.answers(refused(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"))
    assert isinstance(await failure(hasty, schema=SCHEMA), errors.PromptTooLong)
    assert len(endpoint.questions) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_mode_that_is_prescribed_is_the_only_one(hasty: Model, endpoint: ScriptedModel, mode: Mode) -> None:
    """What the configuration says is not probed; its refusal is the answer."""
    endpoint.answers(answering(mode), refused(400, "response_format and tools are unknown"))
    async with Model(replace(hasty.settings, structured_output=mode)) as model:
        answer = await model.ask(PROMPT, schema=SCHEMA)
        assert (answer.mode, answer.text) == (mode, '{"a": 1}')
        assert isinstance(await failure(model, schema=SCHEMA), errors.RequestRefused)
    assert len(endpoint.questions) == 2
    assert ["response_format" in question for question in endpoint.questions] == [mode == "json_schema"] * 2
    assert ["tools" in question for question in endpoint.questions] == [mode == "tools"] * 2


async def test_a_tool_can_only_be_called_with_an_object(hasty: Model, endpoint: ScriptedModel) -> None:
    """A list is asked for in words where there is nothing but tools to hold the model to it."""
    endpoint.answers("[1]")
    async with Model(replace(hasty.settings, structured_output="tools")) as model:
        assert (await model.ask(PROMPT, schema={"type": "array"})).mode == "text"
    assert "tools" not in endpoint.questions[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ending", ["length", "content_filter"])
async def test_a_broken_answer_is_the_same_in_every_mode(
    hasty: Model, endpoint: ScriptedModel, mode: Mode, ending: str
) -> None:
    """A call that is cut off is cut off, and keeps what came of it."""
    endpoint.answers(answering(mode, text='{"a": 12345', finish_reason=ending))
    async with Model(replace(hasty.settings, structured_output=mode)) as model:
        failed = await failure(model, schema=SCHEMA)
    assert type(failed) is (errors.AnswerCut if ending == "length" else errors.AnswerFiltered)
    assert failed.raw == '{"a": 12345'


async def test_an_endpoint_that_refuses_to_count_is_not_asked_to(hasty: Model, endpoint: ScriptedModel) -> None:
    """`stream_options` is left out from then on, and tokens are estimated."""

    def strict(question: Question) -> Response:
        if "stream_options" in question:
            return refused(400, "unknown field stream_options")
        return as_json({**json.loads(completion("yes").get_data()), "usage": None})

    endpoint.answers(strict)
    answers = [await hasty.ask(PROMPT), await hasty.ask(PROMPT)]
    assert [(answer.text, answer.requests) for answer in answers] == [("yes", 2), ("yes", 1)]
    assert answers[1].estimated_tokens == answers[1].prompt_tokens + answers[1].completion_tokens == 201


async def test_an_endpoint_that_does_not_stream_is_understood(hasty: Model, endpoint: ScriptedModel) -> None:
    """A whole completion in the place of a stream is an answer, calls and refusals included."""

    def whole(response: Response) -> Answer:
        body = json.loads(response.get_data())
        return as_json({**body, "object": "text"})

    endpoint.answers(
        whole(completion("yes")),
        whole(completion(None, refusal="no")),
        whole(completion(None, calls=[("answer", "{}")])),
    )
    said: list[ModelAnswer] = [await hasty.ask(PROMPT) for _ in range(3)]
    assert [(answer.text, answer.refusal, answer.calls) for answer in said] == [
        ("yes", None, ()),
        ("", "no", ()),
        ("{}", None, ("answer",)),
    ]
    assert {answer.prompt_tokens for answer in said} == {11}


BREAKS: tuple[tuple[str, dict[str, Any], type[ModelFailed], int], ...] = (
    ("truncate", {}, errors.StreamCut, 3),
    ("disconnect", {}, errors.StreamCut, 3),
    ("corrupt", {}, errors.StreamCorrupt, 3),
    ("slow_first_token", {"seconds": 0.8}, errors.NoFirstToken, 3),
    ("stall", {"seconds": 5.0, "after_chunks": 3}, errors.NotInTime, 1),
    ("rate_limit", {"retry_after": 0.01}, errors.RateLimited, 3),
    ("context_overflow", {}, errors.PromptTooLong, 1),
)


@pytest.mark.parametrize(("breaks", "how", "kind", "requests"), BREAKS)
async def test_another_server_s_failures_are_the_same_ways(
    llmock: LLMock, breaks: str, how: dict[str, Any], kind: type[ModelFailed], requests: int
) -> None:
    """A simulated endpoint that was written by others breaks in the same classes, after as many requests."""
    getattr(llmock.reply("an answer of several words, of which not all arrive", times=None), breaks)(times=None, **how)
    settings = ModelSettings(
        f"m-{breaks}", llmock.base_url("openai"), "k", timeout_s=2.0, first_token_s=0.4, backoff_s=0.01
    )
    async with Model(settings) as model:
        await model._connected()
        failed = await failure(model)
    assert (type(failed), failed.spent.requests) == (kind, requests)
    assert (failed.spent.prompt_tokens > 0) == (breaks not in ("rate_limit", "context_overflow"))


async def test_thoughts_count_as_a_beginning(hasty: Model, endpoint: ScriptedModel) -> None:
    """A model that thinks aloud in a field of its own has begun to answer; what it thinks is not its answer."""
    thinking = delta()
    thinking["choices"][0]["delta"]["reasoning_content"] = "hm"
    endpoint.answers(streamed(thinking, 0.6, delta("yes", finish_reason="stop")))
    assert (await hasty.ask(PROMPT)).text == "yes"
