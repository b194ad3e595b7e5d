"""What a model is not shown, and that its answers come out as if it had been."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from nodes.model_errors import NotUsable
from nodes.model_settings import ModelSettings
from nodes.models import Model
from nodes.private_prompts import hidden
from nodes.prompts import Rendered, quoted
from plans.personal import Found
from tests.nodes.model_server import ScriptedModel
from tools.privacy import WITHHELD, Privacy

KEY = "sk-proj-" + "a1B2" * 6


def prompt(said: str) -> Rendered:
    """A prompt in which somebody has said this."""
    return Rendered("You plan.", f"<goal>{quoted(said)}</goal>", "0" * 64)


async def test_a_model_sees_stand_ins_and_its_answer_has_what_they_stand_for(endpoint: ScriptedModel) -> None:
    """Nothing of an address, a number or a key leaves; the model is told what the stand-ins are."""
    endpoint.answers('{"to": "<EMAIL_1>", "call": "\\u003cPHONE_1\\u003e", "else": "<EMAIL_9>"}')
    async with Model(ModelSettings("m", endpoint.base_url, "k")) as model:
        answer = await model.ask(prompt(f"write to\nann@x.example (+49 30 1234567), key {KEY}"))
    sent = json.dumps(endpoint.questions)
    assert [piece for piece in ("ann@x.example", "1234567", KEY) if piece in sent] == []
    assert "<EMAIL_1> (<PHONE_1>)" in endpoint.prompt()
    assert "stands for one of them" in endpoint.prompt()
    assert json.loads(answer.text) == {"to": "ann@x.example", "call": "+49 30 1234567", "else": "<EMAIL_9>"}


async def test_a_prompt_without_personal_data_goes_out_as_it_is(endpoint: ScriptedModel) -> None:
    """No stand-ins, and no words about them. Names of fields beside which a secret might stand are no secrets."""
    endpoint.answers("yes")
    asked = prompt('a schema: {"password": "string", "token": {"type": "string"}}, order A1234')
    async with Model(ModelSettings("m", endpoint.base_url, "k")) as model:
        await model.ask(asked)
    assert endpoint.prompt() == f"{asked.rules}\n{asked.task}"


def broken(_: str) -> Iterable[Found]:
    """A detector that does not work."""
    raise RuntimeError("its model is gone")


async def test_where_nobody_can_look_nothing_is_sent(endpoint: ScriptedModel) -> None:
    """A detector that fails keeps the question back, and withholds every other text."""
    async with Model(ModelSettings("m", endpoint.base_url, "k"), privacy=Privacy(broken)) as model:
        with pytest.raises(NotUsable, match="personal data could not be looked for"):
            await model.ask(prompt("write to ann@x.example"))
    assert endpoint.questions == []
    assert Privacy(broken).text("ann@x.example") == WITHHELD
    assert Privacy(broken).value({"a": ["ann@x.example", 1]}) == {WITHHELD: [WITHHELD, 1]}


def test_switched_off_texts_keep_personal_data_and_lose_credentials() -> None:
    """`privacy = "off"` is about personal data alone."""
    shown, stand_ins = hidden(prompt(f"ann@x.example {KEY}"), Privacy(None))
    assert (stand_ins.names, "ann@x.example" in shown.task, KEY in shown.task) == ((), True, False)
