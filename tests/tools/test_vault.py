"""Secrets are put in where a call may have them, and are out of all it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from plans.credentials import replaced_in
from plans.failure import ToolFailure
from plans.placeholders import Kept, hider, name_of, placeholder, placeholders_in, put_back
from tools.call import CallFailure, Success, call
from tools.context import ToolContext
from tools.local import local_ports
from tools.registry import Registry, Toolkit
from tools.vault import NamedSecret, Vault, misplaced

KEY = b"k" * 32
SECRET = "s3cr3t-of-ann"


class Memory:
    """A store in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Kept] = {}

    async def keep(self, run_id: str, kept: Mapping[str, Kept]) -> None:
        self.kept |= {(run_id, name): each for name, each in kept.items()}

    async def read(self, run_id: str, names: Sequence[str]) -> Mapping[str, Kept]:
        return {name: self.kept[run_id, name] for name in names if (run_id, name) in self.kept}

    async def share(self, run_id: str, names: Sequence[str]) -> None:
        raise AssertionError("nothing is shared here")

    async def forget(self, run_id: str) -> None:
        raise AssertionError("nothing is forgotten here")


def vault(**named: NamedSecret) -> Vault:
    """An empty vault with these secrets of settings."""
    return Vault(KEY, Memory(), named)


def kit_of(name: str) -> tuple[Toolkit, list[Any]]:
    """A toolkit that logs in and sends, and what it was given."""
    kit, given_ = Toolkit(name), list[Any]()

    @kit.tool(effect="read", secret_args=("pin",), rules=[{"check": "length_at_most", "arg": "pin", "value": 20}])
    async def login(user: str, pin: str = "", key: SecretStr | None = None, fails: bool = False) -> Any:
        """Log in."""
        given_.append((user, pin, key.get_secret_value() if key else None))
        if fails:
            raise ToolFailure("NOT_FOUND", f"{user} with {pin} is not there")
        return {"session_id": "abc-123-def", "echo": [user, pin, pin.replace("-", "%2D")], pin: "as a key"}

    @kit.tool(effect="read")
    async def send(session: str, body: str) -> str:
        """Send."""
        given_.append((session, body))
        return body

    return kit, given_


async def called(kit: Toolkit, tool: str, args: dict[str, Any], safe: Vault, folder: Path) -> Any:
    """The outcome of a safeguarded call in the run of a bare context."""
    ports = replace(local_ports(), vault=safe)
    return await call(Registry.of(kit)[tool], args, ToolContext.bare(folder), ports)


def test_a_placeholder_says_its_name_and_nothing_of_the_secret() -> None:
    """The same secret under the same name and key has one placeholder; another in any of these has another."""
    shown = placeholder("inputs.pw", SECRET, KEY)
    assert name_of(shown) == "inputs.pw"
    assert len({shown, placeholder("inputs.pw", SECRET, KEY), placeholder("b", SECRET, KEY),
                placeholder("inputs.pw", "x", KEY), placeholder("inputs.pw", SECRET, b"other")}) == 4  # fmt: skip
    assert placeholders_in({"a": [f"x {shown}", 3]}) == {shown}


TEXTS = st.lists(st.sampled_from([*"ab:= \n\"'{}", "password", "password: ", "sk-a1B2c3D4e5f6", "://u:p@h", "token="]))


@given(TEXTS.map("".join))
def test_what_is_hidden_can_be_put_back(text: str) -> None:
    """Placeholders stand for exactly what was there; hiding again finds nothing new."""
    kept: dict[str, Kept] = {}
    value = {"text": text, "password": text}
    hidden = replaced_in(value, hider(KEY, kept))
    again: dict[str, Kept] = {}
    assert replaced_in(hidden, hider(KEY, again)) == hidden
    assert put_back(hidden, {name: each.secret for name, each in kept.items()}) in (value, put_back(value, {}))


async def test_a_secret_reaches_its_argument_and_is_out_of_the_result(tmp_path: Path) -> None:
    """Declared, or by its type; what the tool repeats, also as a key, is a placeholder again. A rule over a secret is
    judged by the secret."""
    kit, given_ = kit_of("crm")
    safe = vault(pin=NamedSecret(value=SecretStr(SECRET)))
    shown = safe.names()["pin"]
    outcome = await called(kit, "login", {"user": "ann", "pin": shown, "key": shown}, safe, tmp_path)
    assert isinstance(outcome, Success)
    assert given_ == [("ann", SECRET, SECRET)]
    assert SECRET not in repr(outcome)
    assert outcome.value["echo"][1] == outcome.value["echo"][2].replace("%2D", "-") or shown in outcome.value["echo"][1]

    failed = await called(kit, "login", {"user": "ann", "pin": shown, "fails": True}, safe, tmp_path)
    assert isinstance(failed, CallFailure)
    assert SECRET not in repr(failed)
    assert failed.failure.message == "ann with *** is not there"

    long = vault(pin=NamedSecret(value=SecretStr(SECRET * 3)))
    broken = await called(kit, "login", {"user": "ann", "pin": long.names()["pin"]}, long, tmp_path)
    assert isinstance(broken, CallFailure)
    assert (broken.failure.code, broken.called, len(given_)) == ("RULE_VIOLATED", False, 2)


async def test_what_a_toolkit_has_given_goes_back_to_it_and_to_nobody_else(tmp_path: Path) -> None:
    """A session id is a placeholder in the result; another tool of the toolkit gets it, another toolkit the
    placeholder, and so does a text that it stands in by a person's word."""
    crm, given_ = kit_of("crm")
    mail, mailed = kit_of("mail")
    safe = vault()
    first = await called(crm, "login", {"user": "ann", "pin": "1"}, safe, tmp_path)
    session = first.value["session_id"]
    assert name_of(session) == "session_id"
    await called(crm, "send", {"session": session, "body": f"it is {session}"}, safe, tmp_path)
    assert given_[-1] == ("abc-123-def", "it is abc-123-def")
    await called(mail, "send", {"session": session, "body": f"it is {session}"}, safe, tmp_path)
    assert mailed == [(session, f"it is {session}")]

    hidden = await safe.seal("run-1", "password: hunter2-of-ann")
    [shown] = placeholders_in(hidden)
    await called(crm, "send", {"session": "x", "body": hidden}, safe, tmp_path)
    assert given_[-1] == ("x", f"password: {shown}")
    await called(crm, "login", {"user": "ann", "pin": shown}, safe, tmp_path)
    assert given_[-1][1] == "hunter2-of-ann"


async def test_a_secret_that_is_not_for_the_tool_or_not_there_fails_before_the_call(tmp_path: Path) -> None:
    """Nothing is called with a placeholder in the place of a secret."""
    kit, given_ = kit_of("crm")
    only = vault(pin=NamedSecret(value=SecretStr(SECRET), tools=("send*",)))
    refused = await called(kit, "login", {"user": "ann", "pin": only.names()["pin"]}, only, tmp_path)
    assert (refused.failure.code, refused.called) == ("NOT_PERMITTED", False)
    changed = vault(pin=NamedSecret(value=SecretStr("another-one")))
    lost = await called(kit, "login", {"user": "ann", "pin": only.names()["pin"]}, changed, tmp_path)
    assert (lost.failure.code, lost.called) == ("PRECONDITION_FAILED", False)
    forged = await called(kit, "login", {"user": "ann", "pin": f"[sealed:pw#{'0' * 16}]"}, changed, tmp_path)
    assert (forged.failure.code, forged.called, given_) == ("PRECONDITION_FAILED", False, [])


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"body": "[sealed:secrets.pin#" + "0" * 16 + "]"}, ["body"]),
        ({"body": ["[sealed:inputs.pin#" + "0" * 16 + "]"]}, ["body"]),
        ({"body": "it is [sealed:secrets.pin#" + "0" * 16 + "]"}, ["body"]),
        ({"body": {"deep": ["or [sealed:inputs.pin#" + "0" * 16 + "]"]}}, ["body"]),
        ({"pin": "it is [sealed:secrets.pin#" + "0" * 16 + "]"}, []),
        ({"body": "[sealed:session_id#" + "0" * 16 + "]"}, []),
        ({"pin": "[sealed:secrets.pin#" + "0" * 16 + "]"}, []),
    ],
)
def test_a_named_secret_stands_in_a_secret_argument_alone(args: dict[str, Any], wrong: list[str]) -> None:
    """What somebody has named on purpose and put elsewhere is a mistake; what was found in a text is not."""
    assert misplaced(args, frozenset({"pin"})) == wrong
