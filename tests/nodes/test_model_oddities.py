"""Servers that speak OpenAI's protocol with an accent: what they mean is understood, and nothing of it is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from werkzeug import Response

from nodes.answered import unusable
from nodes.model_bodies import BOM, MAX_ERROR, MAX_PIECE, MAX_STREAM, Body, BodyRefused, Received
from nodes.model_modes import MODES, Mode
from nodes.model_settings import ModelSettings
from nodes.models import Model
from nodes.prompts import Rendered
from plans.endings import CUT, ENDINGS, FAILED, FILTERED, REFUSED, ending
from tests.nodes.model_server import Answer, ScriptedModel, as_json, completion, delta, streamed

PROMPT = Rendered("r" * 396, "t" * 400, "0" * 64)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TEXT = '{"a": "\U0001f600"}'
STOP = delta(finish_reason="stop")


def events(*chunks: dict[str, Any], end: str = "\n") -> bytes:
    """A stream of these chunks as bytes, its lines ended so."""
    lines = [*(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
    return "".join(f"{line}{end}{end}" for line in lines).encode()


def body(content: bytes, kind: str = "text/event-stream", **headers: str) -> Response:
    """These bytes, as that kind of content."""
    return Response(content, 200, {name.replace("_", "-"): said for name, said in headers.items()}, content_type=kind)


def whole(**message: Any) -> Response:
    """A completion that is not streamed although it was asked for."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return as_json({"choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 7}})


def called(arguments: Any, **more: Any) -> dict[str, Any]:
    """A chunk with a call."""
    return delta(calls=[{"index": 0, "id": "c", "function": {"name": "answer", "arguments": arguments}, **more}])


THOUGHT = {**delta(), "choices": [{"index": 0, "delta": {"reasoning": "hm"}, "finish_reason": None}]}
SAID = events(delta(TEXT), STOP)
ACCENTS: dict[str, Answer] = {
    "CRLF": body(events(delta(TEXT), STOP, end="\r\n")),
    "CR": body(events(delta(TEXT), STOP, end="\r")),
    "a byte order mark": body(BOM + SAID),
    "gzip": body(gzip.compress(SAID), Content_Encoding="gzip"),
    "gzip, whole": body(gzip.compress(whole(content=TEXT).get_data()), "application/json", Content_Encoding="gzip"),
    "a stream called text": body(SAID, "text/plain"),
    "a stream called JSON": body(SAID, "application/json"),
    "a whole one called HTML": body(whole(content=TEXT).get_data(), "text/html"),
    "a whole one with a mark": body(BOM + whole(content=TEXT).get_data(), "application/json"),
    "parts of content": whole(content=[{"type": "text", "text": TEXT[:5]}, {"type": "text", "text": TEXT[5:]}]),
    "an emoji in two halves": streamed(delta('{"a": "\ud83d'), delta('\ude00"}'), STOP),
    "no end mark": streamed(delta(TEXT), STOP, done=False),
    "empty choices between": streamed({**delta(), "choices": None}, delta(TEXT), {**delta(), "choices": []}, STOP),
    "another word for the end": streamed(delta(TEXT), delta(finish_reason="eos_token")),
    "thoughts in a field": streamed(THOUGHT, delta(TEXT), STOP),
    "an empty refusal": streamed(delta(TEXT, refusal=""), STOP),
}  # fmt: skip


@pytest.fixture
async def door(endpoint: ScriptedModel) -> AsyncIterator[Model]:
    """A door that asks for words."""
    settings = ModelSettings("m", endpoint.base_url, "k", backoff_s=0.01, structured_output="text")
    async with Model(settings) as model:
        yield model


@pytest.mark.parametrize("answer", [pytest.param(answer, id=name) for name, answer in ACCENTS.items()])
async def test_an_accent_is_understood(door: Model, endpoint: ScriptedModel, answer: Answer) -> None:
    """One request, and the text to the character."""
    endpoint.answers(answer)
    found = await door.ask(PROMPT, schema=SCHEMA)
    assert (found.text, found.requests, unusable(found)) == (TEXT, 1, None)


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a": 1}'])
@pytest.mark.parametrize("streams", [True, False])
async def test_arguments_may_come_as_an_object(
    door: Model, endpoint: ScriptedModel, arguments: Any, streams: bool
) -> None:
    """Some local servers send what a call is given not as text; it is the same answer."""
    function = {"name": "answer", "arguments": arguments}
    endpoint.answers(
        streamed(called(arguments), STOP) if streams else whole(content=None, tool_calls=[{"function": function}])
    )
    async with Model(replace(door.settings, structured_output="tools")) as model:
        answer = await model.ask(PROMPT, schema=SCHEMA)
    assert (json.loads(answer.text), answer.calls) == ({"a": 1}, ("answer",))


async def test_two_calls_under_one_number_are_two(door: Model, endpoint: ScriptedModel) -> None:
    """Their ids tell them apart: they are not run into one."""
    endpoint.answers(streamed(called('{"a":1}', id="c1"), called('{"a":2}', id="c2"), STOP))
    answer = await door.ask(PROMPT)
    assert answer.calls == ("answer", "answer")
    assert answer.text == '{"a":1}\n{"a":2}'


BILLS: list[Any] = [
    {"prompt_tokens": "many"}, {"prompt_tokens": -5, "completion_tokens": 7}, [], "free", {},
    {"prompt_tokens": 10**30, "completion_tokens": 7}, {"prompt_tokens": 5.5, "completion_tokens": 7},
    {"prompt_tokens": True, "completion_tokens": 7},
]  # fmt: skip


@pytest.mark.parametrize("usage", BILLS)
@pytest.mark.parametrize("streams", [True, False])
async def test_a_bill_that_is_none_costs_no_answer(
    door: Model, endpoint: ScriptedModel, usage: Any, streams: bool
) -> None:
    """Tokens are estimated then: what an endpoint says of them can neither lower a run's count nor break its state."""
    chunks = streamed(delta(TEXT), STOP, {**delta(), "choices": [], "usage": usage})
    single = as_json({"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}], "usage": usage})
    endpoint.answers(chunks if streams else single)
    answer = await door.ask(PROMPT)
    assert (answer.text, answer.prompt_tokens, answer.requests) == (TEXT, 200, 1)
    assert answer.estimated_tokens == answer.prompt_tokens + answer.completion_tokens


async def test_thoughts_cost_what_they_cost(door: Model, endpoint: ScriptedModel) -> None:
    """A model that thinks and says nothing has been paid for its thoughts; they are estimated where nobody counts."""
    thinking = {**delta(), "choices": [{"index": 0, "delta": {"reasoning_content": "h" * 400}, "finish_reason": None}]}
    endpoint.answers(streamed(thinking, delta(finish_reason="length")))
    answer = await door.ask(PROMPT)
    assert (answer.text, answer.completion_tokens, answer.estimated_tokens) == ("", 100, 300)


async def test_a_model_s_name_is_bounded(door: Model, endpoint: ScriptedModel) -> None:
    """It stands in rows and tables: neither long nor anything that acts on a terminal or on the database."""
    endpoint.answers(as_json({"choices": [{"message": {"content": "x"}}], "model": "m\x00" + "m" * 5_000}))
    answer = await door.ask(PROMPT)
    assert len(answer.model) <= 210
    assert "\x00" not in answer.model


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("broken", ["drop", "html", "nothing", "half"])
async def test_what_breaks_breaks_alike_in_every_mode(
    door: Model, endpoint: ScriptedModel, mode: Mode, broken: str
) -> None:
    """And an answer that follows is had in the same question, where asking again helps."""
    good = completion(None, calls=[("answer", '{"a": 1}')]) if mode == "tools" else completion('{"a": 1}')
    bad: dict[str, Answer] = {
        "drop": streamed(delta('{"a"'), done=False),
        "html": Response("<h1>502</h1>", 502, content_type="text/html"),
        "nothing": streamed(),
        "half": streamed(delta('{"a"'), '{"choices": [{"de'),
    }
    endpoint.answers(bad[broken], good)
    async with Model(replace(door.settings, structured_output=mode)) as model:
        answer = await model.ask(PROMPT, schema=SCHEMA)
    assert (answer.text, answer.mode, answer.requests) == ('{"a": 1}', mode, 2)


@pytest.mark.parametrize(("said", "meant"), [
    ("stop", "stop"), ("tool_calls", "tool_calls"), ("eos", "eos"), ("MAX_TOKENS", CUT), ("model_length", CUT),
    ("FINISH_REASON_SAFETY", FILTERED), ("refusal", REFUSED), ("insufficient_system_resource", FAILED),
    ("abort", FAILED), ("", None), (None, None), (7, None),
])  # fmt: skip
def test_four_ends_have_many_words(said: object, meant: str | None) -> None:
    """What is not known as one of them is an end like any other."""
    assert ending(said) == meant
    assert set(ENDINGS.values()) == {CUT, FILTERED, REFUSED, FAILED}


async def _read(*pieces: bytes, encodings: tuple[str, ...] = (), **how: bool) -> tuple[bytes, Received]:
    async def wire() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    received = Received()
    read = Body(wire(), encodings, received, failed=how.get("failed", False), streamed=how.get("streamed", True))
    return b"".join([piece async for piece in read.pieces()]), received


@pytest.mark.parametrize("cut", range(1, 6))
async def test_a_mark_is_left_out_however_it_is_cut(cut: int) -> None:
    """And what only begins like one is kept."""
    for given, meant in ((BOM + b"data", b"data"), (BOM[:2] + b"data", BOM[:2] + b"data"), (BOM[:1], BOM[:1])):
        assert (await _read(given[:cut], given[cut:]))[0] == meant


async def test_the_bounds_of_a_body() -> None:
    """A line that does not end, a stream that does not end, a bomb; an error's body is cut off without ado."""
    line, million = b"x" * 999_999 + b"\n", b"x" * 1_000_000
    assert len((await _read(*[line] * 20))[0]) == 20_000_000
    with pytest.raises(BodyRefused):
        await _read(*[million] * (MAX_PIECE // 1_000_000 + 1))
    with pytest.raises(BodyRefused):
        await _read(*[line] * (MAX_STREAM // 1_000_000 + 1))
    with pytest.raises(BodyRefused):
        await _read(gzip.compress(million * 20), encodings=("gzip",))
    found, received = await _read(*[million] * 9, failed=True)
    assert len(found) == MAX_ERROR
    assert not received.too_large
    assert len(received.head) == 20_000
