"""People are told what waits for them: signed, to the one allowed host, again until it has arrived."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Response

from checkpoints.outbox import Outbox, OutboxEvent
from graph.notifying import FIRST_PAUSE_S, LONGEST_PAUSE_S, Notifier, Told, message_of, pause_s
from graph.settings import Settings
from graph.webhooks import NotDelivered, signature, webhook_from
from nodes.ids import trace_id_of
from plans.errors import ConfigurationError
from plans.failure import ToolFailure
from tests.checkpoints.test_approvals import a_request
from tests.graph.kits import Shop, plan, step
from tests.graph.receiver import SECRET, Receiver
from tests.running import running

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ASKS = plan(step("s1", "send", args={"to": "ann@example.com", "text": "pin 4711"}, require_approval=True))


@pytest.fixture
def receiver(httpserver: HTTPServer) -> Receiver:
    """A receiver of messages."""
    return Receiver(httpserver)


def an_event(**fields: Any) -> OutboxEvent:
    """A run that has failed, or whatever is said instead."""
    told = {"event_id": "e1", "kind": "run_failed", "run_id": "r1", "thread_id": "t1", "tenant": "", "at": NOW}
    return OutboxEvent.model_validate({**told, "attempts": 1, "code": "NOT_FOUND", "message": "no order A1", **fields})


def test_a_message_names_run_thread_code_and_trace() -> None:
    """What a person on call needs to find it again; the trace is the run's own, whoever drives it."""
    message = message_of(an_event())
    assert {name: message[name] for name in ("id", "type", "run_id", "thread_id", "code", "message")} == {
        "id": "e1", "type": "run.failed", "run_id": "r1", "thread_id": "t1", "code": "NOT_FOUND",
        "message": "no order A1",
    }  # fmt: skip
    assert message["trace_id"] == trace_id_of("r1") != trace_id_of("r2")
    assert len(bytes.fromhex(message["trace_id"])) == 16
    assert message["look_with"] == "surestep show t1"


def test_a_message_about_a_question_holds_no_argument_and_no_secret() -> None:
    """What would be sent, and to whom, is for those who may decide; a credential in a sentence is blanked."""
    request = a_request("a1", to="ann@example.com").model_copy(update={"reason": "token=abc123secret is used"})
    message = message_of(an_event(kind="approval_requested", code=None, message=None, request=request))
    assert message["approval"]["approval_id"] == "a1"
    assert message["look_with"] == "surestep approvals t1"
    assert not [word for word in ("ann@example.com", "abc123secret") if word in str(message)]


@given(st.integers(1, 10_000), st.floats(0, 1), st.none() | st.floats(0, 1e9))
def test_a_pause_grows_and_has_an_end(attempts: int, chance: float, asked_for: float | None) -> None:
    """Whatever a receiver asks for, an event rests at least some seconds and at most an hour."""
    pause = pause_s(attempts, chance, asked_for)
    assert FIRST_PAUSE_S * 0.75 <= pause <= LONGEST_PAUSE_S
    assert pause_s(attempts + 1, chance, asked_for) >= pause
    assert asked_for is None or pause >= min(asked_for, LONGEST_PAUSE_S)


def test_the_signature_is_that_of_the_public_description() -> None:
    """The example that standardwebhooks.com's own libraries are tested with; and everything signed counts."""
    key = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert len({signature(key, i, t, b) for i in ("a", "b") for t in (1, 2) for b in (b"x", b"y")}) == 8
    assert signature(key, "a", 1, b"x") != signature(b"another", "a", 1, b"x")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"notify_url": "https://h.example.com/x"}, "notify_secret is not"),
        ({"notify_url": "http://h.example.com/x", "notify_secret": SECRET}, "without TLS"),
        ({"notify_url": "https://h.example.com/x", "notify_secret": "whsec_ not base64 at all"}, "no base64"),
    ],
)
def test_a_webhook_that_cannot_be_trusted_is_refused(said: dict[str, str], why: str) -> None:
    """Without a secret, in the clear to the outside, or with half a secret: said before anything is sent."""
    with pytest.raises(ConfigurationError, match=why):
        webhook_from(Settings.load(environment={}, **said))  # type: ignore[arg-type]  # any settings


@pytest.mark.parametrize("url", ["ftp://h/x", "https://user:pw@h.example.com/", "hook.example.com"])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    """A webhook's address often is its password."""
    with pytest.raises(ConfigurationError, match="absolute http or https URL") as refused:
        Settings.load(environment={}, notify_url=url)
    assert url not in str(refused.value)


async def test_a_message_goes_to_checked_addresses_only() -> None:
    """A name that leads inside is refused where nobody has allowed its address, whatever it is called."""

    async def inside(_host: str, _port: int) -> list[str]:
        return ["169.254.169.254"]

    settings = Settings.load(environment={}, notify_url="https://h.example.com/x", notify_secret=SECRET)
    webhook = webhook_from(settings, resolve=inside)
    assert webhook is not None
    with pytest.raises(NotDelivered, match="metadata service, which is refused"):
        await webhook.send("e1", b"{}", now=0)


async def test_a_question_is_told_before_the_program_ends(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """A program that asks and ends tells by itself; what it tells is signed and about this run."""
    async with running(database_url, tmp_path, [Shop().kit], **receiver.settings) as agent:
        result = await agent.run(plan=ASKS, thread_id="t1")
        assert result.status == "paused"
    assert receiver.types() == ["approval.requested"]
    assert receiver.heard[0]["run_id"] == result.run_id
    assert receiver.heard[0]["approval"]["step_id"] == "s1"
    assert "4711" not in str(receiver.heard)


async def test_a_message_is_sent_again_under_its_id_until_it_has_arrived(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """A receiver that is overloaded or redirects is tried again, in its own time; one that has it is left alone."""
    receiver.answers = [
        Response(status=503, headers={"Retry-After": "600"}),
        Response(status=302, headers={"Location": "http://elsewhere.example.com/"}),
    ]
    webhook = webhook_from(Settings.load(environment={}, **receiver.settings))
    assert webhook is not None
    async with running(database_url, tmp_path, [Shop().kit]) as agent:
        await agent.run(plan=ASKS, thread_id="t1")
        database = agent.engine.database
        notifier = Notifier(Outbox(database), webhook, agent.engine.clock)
        said = [(await notifier.deliver()).not_delivered]
        assert await notifier.deliver() == Told()
        (row,) = await database.fetch("SELECT extract(epoch FROM next_at - now())::float8 AS s FROM surestep.outbox")
        assert 550 < row["s"] < 601
        for _ in range(3):
            await database.execute("UPDATE surestep.outbox SET next_at = now()")
            said.append((await notifier.deliver()).not_delivered)
    where = webhook.target.authority
    assert said == [(f"{where} answered 503",), (f"{where} answered 302 (redirects are not followed)",), (), ()]
    assert len(receiver.seen) == 3
    assert len(set(receiver.seen)) == 1
    assert receiver.types() == ["approval.requested"]


async def test_a_run_that_fails_is_told_with_the_code_of_its_failure(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """Not only questions: a run that did not get through is told when it ends, and one that did is not."""
    shop = Shop()
    shop.fails("double", ToolFailure("NOT_FOUND", "there is no such number"))
    async with running(database_url, tmp_path, [shop.kit], **receiver.settings) as agent:
        failed = await agent.run(plan=plan(step("s1", "double", args={"number": 1})))
        assert failed.status == "failed"
        assert (await agent.run(plan=plan(step("s1", "double", args={"number": 2})))).status == "done"
    (message,) = receiver.heard
    assert (message["type"], message["run_id"], message["code"]) == ("run.failed", failed.run_id, "NOT_FOUND")
    assert "there is no such number" in message["message"]
