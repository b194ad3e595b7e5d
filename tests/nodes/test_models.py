"""The door to a model: every kind of answer and every kind of failure, over a real HTTP server."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from dataclasses import replace
from email.utils import formatdate

import pytest
from llmock.pytest_plugin import LLMock
from werkzeug import Response

from nodes.model_errors import ModelFailed, retry_after_s
from nodes.model_settings import ModelSettings, configured
from nodes.models import Model
from nodes.prompts import Rendered
from plans.errors import ModelNotConfigured
from tests.nodes.model_server import ScriptedModel, after, as_json, completion, refused

PROMPT = Rendered("rules", "task", "0" * 64)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


async def test_an_answer_comes_back_raw_with_its_tokens(model: Model, endpoint: ScriptedModel) -> None:
    """The text is the model's own, to the character, with why it stopped and what it cost."""
    endpoint.answers(completion("  ```json\n{}\n```\n", prompt_tokens=123, completion_tokens=45))
    answer = await model.ask(PROMPT)
    assert answer.text == "  ```json\n{}\n```\n"
    assert (answer.finish_reason, answer.refusal) == ("stop", None)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.requests) == (123, 45, 1)
    assert answer.model == "scripted-1"
    assert answer.elapsed_s > 0


async def test_the_question_carries_rules_task_key_and_model(model: Model, endpoint: ScriptedModel) -> None:
    """What is sent is the prompt as system and user message, under the configured name and key."""
    endpoint.answers("yes")
    await model.ask(PROMPT, max_tokens=99)
    question = endpoint.questions[0]
    assert question["model"] == "scripted"
    assert question["messages"] == [{"content": "rules", "role": "system"}, {"content": "task", "role": "user"}]
    assert question["max_completion_tokens"] == 99
    assert "response_format" not in question
    assert endpoint.headers[0]["Authorization"] == "Bearer key-1"


async def test_a_schema_is_sent_as_response_format(model: Model, endpoint: ScriptedModel) -> None:
    """An endpoint that can hold a model to a schema is told the schema."""
    endpoint.answers('{"a": 1}')
    await model.ask(PROMPT, schema=SCHEMA)
    assert endpoint.questions[0]["response_format"]["type"] == "json_schema"
    assert endpoint.questions[0]["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
async def test_a_cut_or_filtered_answer_keeps_its_text_and_tokens(
    model: Model, endpoint: ScriptedModel, finish_reason: str
) -> None:
    """An answer that stopped early is an answer, with a schema as without; nothing of it is lost."""
    endpoint.answers(completion('{"a": ', finish_reason=finish_reason))
    answer = await model.ask(PROMPT, schema=SCHEMA)
    assert (answer.text, answer.finish_reason) == ('{"a": ', finish_reason)
    assert (answer.prompt_tokens, answer.completion_tokens) == (11, 7)


async def test_a_refusal_comes_back_as_refusal(model: Model, endpoint: ScriptedModel) -> None:
    """A model's refusal field is not mistaken for an empty answer."""
    endpoint.answers(completion(None, refusal="I will not plan that."))
    answer = await model.ask(PROMPT, schema=SCHEMA)
    assert (answer.text, answer.refusal) == ("", "I will not plan that.")
    assert answer.prompt_tokens == 11


async def test_a_rate_limit_is_waited_out_as_long_as_it_says(llmock: LLMock) -> None:
    """After 429 with Retry-After the question is asked again, and not earlier."""
    llmock.rate_limit(times=1, retry_after=0.4).reply("later")
    async with Model(ModelSettings("m", llmock.base_url("openai"), "k", backoff_s=0.01)) as model:
        answer = await model.ask(PROMPT)
    assert (answer.text, answer.requests) == ("later", 2)
    llmock.assert_resilient()


async def test_a_rate_limit_beyond_our_patience_is_handed_on(model: Model, endpoint: ScriptedModel) -> None:
    """A wait that is longer than the bound is not slept through: the failure says how long it is."""
    endpoint.answers(refused(429, Retry_After="3600"))
    with pytest.raises(ModelFailed) as failed:
        await model.ask(PROMPT)
    assert (failed.value.code, failed.value.delay_s, failed.value.spent.requests) == ("RATE_LIMITED", 3600.0, 1)


async def test_a_server_error_is_tried_three_times(model: Model, endpoint: ScriptedModel) -> None:
    """HTTP 500 is tried again twice, then a failure says so without the server's own words."""
    endpoint.answers(refused(500, "stack trace with password hunter2"))
    with pytest.raises(ModelFailed) as failed:
        await model.ask(PROMPT)
    assert (failed.value.code, failed.value.spent.requests, len(endpoint.questions)) == ("UNAVAILABLE", 3, 3)
    assert "hunter2" not in failed.value.message
    assert "hunter2" in failed.value.raw


async def test_a_server_error_that_passes_costs_only_time(model: Model, endpoint: ScriptedModel) -> None:
    """A question that fails once and is answered then is answered."""
    endpoint.answers(refused(503), completion("ok"))
    assert (await model.ask(PROMPT)).requests == 2


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "MODEL_REFUSED"),
        (401, "MODEL_NOT_CONFIGURED"),
        (403, "MODEL_NOT_CONFIGURED"),
        (404, "MODEL_NOT_CONFIGURED"),
        (413, "MODEL_REFUSED"),
        (422, "MODEL_REFUSED"),
    ],
)
async def test_a_refused_request_is_not_repeated(model: Model, endpoint: ScriptedModel, status: int, code: str) -> None:
    """What would be refused again is asked once."""
    endpoint.answers(refused(status))
    with pytest.raises(ModelFailed) as failed:
        await model.ask(PROMPT)
    assert (failed.value.code, len(endpoint.questions)) == (code, 1)


async def test_an_empty_account_is_not_waited_for(model: Model, endpoint: ScriptedModel) -> None:
    """A 429 that means no quota is a matter of configuration, not of patience."""
    endpoint.answers(refused(429, code="insufficient_quota"))
    with pytest.raises(ModelFailed) as failed:
        await model.ask(PROMPT)
    assert (failed.value.code, len(endpoint.questions)) == ("MODEL_NOT_CONFIGURED", 1)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "message",
    ["'response_format' of type 'json_schema' is not supported with this model", "Invalid schema for response_format",
     "unknown field: response_format"],
)  # fmt: skip
async def test_an_endpoint_without_schemas_is_asked_plainly_from_then_on(
    model: Model, endpoint: ScriptedModel, status: int, message: str
) -> None:
    """An HTTP 400 about response_format costs one request, once for the life of the door."""
    endpoint.answers(refused(status, message), completion("one"), completion("two"))
    assert (await model.ask(PROMPT, schema=SCHEMA)).text == "one"
    assert (await model.ask(PROMPT, schema=SCHEMA)).text == "two"
    assert ["response_format" in question for question in endpoint.questions] == [True, False, False]


async def test_schemas_can_be_switched_off(endpoint: ScriptedModel) -> None:
    """Where the configuration says so, no schema is ever sent."""
    endpoint.answers("plain")
    async with Model(ModelSettings("m", endpoint.base_url, "k", structured_output="text")) as model:
        await model.ask(PROMPT, schema=SCHEMA)
    assert "response_format" not in endpoint.questions[0]


async def test_a_slow_model_is_given_up_in_time(model: Model, endpoint: ScriptedModel) -> None:
    """The whole question has one deadline; a late answer is a TIMEOUT and is not asked for again."""
    endpoint.answers(after(1.0, completion("late")))
    async with Model(replace(model.settings, timeout_s=0.2)) as hasty:
        with pytest.raises(ModelFailed) as failed:
            await hasty.ask(PROMPT)
    assert (failed.value.code, len(endpoint.questions)) == ("TIMEOUT", 1)


async def test_retries_do_not_outlast_the_deadline(model: Model, endpoint: ScriptedModel) -> None:
    """Waiting for a rate limit counts against the question's time."""
    endpoint.answers(refused(429, Retry_After="5"))
    async with Model(replace(model.settings, timeout_s=0.3)) as hasty:
        with pytest.raises(ModelFailed) as failed:
            await hasty.ask(PROMPT)
    assert failed.value.code == "TIMEOUT"


async def test_a_cancelled_question_is_cancelled(model: Model, endpoint: ScriptedModel) -> None:
    """Cancelling who asks ends the question at once, as cancellation and not as a failure."""
    endpoint.answers(after(1.0, completion("late")))
    asking = asyncio.create_task(model.ask(PROMPT))
    await asyncio.sleep(0.3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """A refused connection is tried again, then names the endpoint and the setting, without its password."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ModelSettings("m", f"http://user:secret@127.0.0.1:{port}/v1", "k", backoff_s=0.01)
    async with Model(settings) as model:
        with pytest.raises(ModelFailed) as failed:
            await model.ask(PROMPT)
    assert (failed.value.code, failed.value.spent.requests) == ("UNAVAILABLE", 3)
    assert f"http://127.0.0.1:{port}/v1" in failed.value.message
    assert "OPENAI_BASE_URL" in failed.value.message
    assert "secret" not in failed.value.message


@pytest.mark.parametrize(
    "body",
    [
        Response("<html>It works!</html>", content_type="text/html"),
        Response("{not json", content_type="application/json"),
        Response("", content_type="application/json"),
        Response("[]", content_type="application/json"),
        Response("null", content_type="application/json"),
        as_json({"hello": "world"}),
        as_json({"choices": None}),
        as_json({"choices": []}),
        as_json({"choices": [{"index": 0}]}),
        as_json({"choices": [{"index": 0, "message": None}]}),
        as_json({"choices": ["text"]}),
    ],
)
async def test_a_foreign_body_is_an_invalid_answer(model: Model, endpoint: ScriptedModel, body: Response) -> None:
    """Whatever comes back with HTTP 200 and is no chat completion ends as one typed failure."""
    endpoint.answers(body)
    with pytest.raises(ModelFailed) as failed:
        await model.ask(PROMPT)
    assert failed.value.code == "MODEL_ANSWER_INVALID"


async def test_tokens_that_nobody_reports_are_estimated_and_said_to_be(model: Model, endpoint: ScriptedModel) -> None:
    """An answer without usage is counted by its length, and how much of the count is an estimate is known."""
    message = {"role": "assistant", "content": "hi"}
    endpoint.answers(as_json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    answer = await model.ask(PROMPT)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens, answer.estimated_tokens) == ("hi", 3, 1, 4)
    assert answer.model == "scripted"


async def test_questions_can_be_asked_at_the_same_time(model: Model, endpoint: ScriptedModel) -> None:
    """Several first questions at once open one connection pool and all are answered."""
    endpoint.answers("yes")
    answers = await asyncio.gather(*(model.ask(PROMPT) for _ in range(5)))
    assert [answer.text for answer in answers] == ["yes"] * 5


def test_each_event_loop_can_have_its_own_door(endpoint: ScriptedModel) -> None:
    """Two loops one after the other in one process do not trip over each other's connections."""
    endpoint.answers("yes")

    async def once() -> str:
        async with Model(ModelSettings("m", endpoint.base_url, "k")) as model:
            return (await model.ask(PROMPT)).text

    assert [asyncio.run(once()), asyncio.run(once())] == ["yes", "yes"]


@pytest.mark.parametrize("model_name", [None, ""])
def test_no_model_says_what_to_set(model_name: str | None) -> None:
    """Without a model the message names each setting and the file."""
    with pytest.raises(ModelNotConfigured) as refusal:
        configured(model_name)
    for name in ("SURESTEP_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "surestep.toml"):
        assert name in str(refusal.value)


def test_a_model_without_endpoint_or_key_is_not_configured() -> None:
    """A model name alone reaches nobody: a key for OpenAI or another server's address is missing."""
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        configured("gpt-x")
    assert configured("gpt-x", api_key="k").endpoint == "https://api.openai.com/v1"
    assert configured("local", base_url="http://127.0.0.1:8080/v1").endpoint == "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize("address", ["localhost:8080", "ftp://x/v1", "http://"])
def test_an_address_that_is_none_is_refused_before_any_call(address: str) -> None:
    """A base URL without http is found when it is read, not when the first goal fails."""
    with pytest.raises(ModelNotConfigured, match="OPENAI_BASE_URL"):
        configured("m", base_url=address)


def test_the_key_is_not_shown() -> None:
    """Settings can be printed without giving the key away."""
    assert "key-1" not in repr(ModelSettings("m", api_key="key-1"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(1_700_000_030, usegmt=True), "date": formatdate(1_700_000_000, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(1_700_000_000, usegmt=True), "date": formatdate(1_700_000_030, usegmt=True)}, 0.0),
        ({"retry-after": formatdate(1_700_000_000, usegmt=True)}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds, or a date against the answer's own date; anything else says nothing."""
    assert retry_after_s(headers) == seconds


def test_importing_the_door_is_cheap() -> None:
    """The module can be imported without the model libraries."""
    heavy = {"openai", "langchain_core", "langchain_openai", "tenacity"}
    seen = f"import sys, nodes.models; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", seen], check=True, capture_output=True, text=True).stdout == "[]\n"
