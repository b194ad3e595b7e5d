"""`surestep tools`: what tools are like now, changing them while runs go on, and who has."""

from __future__ import annotations

import getpass
import json
import socket
from typing import Any

import psycopg
import pytest
import yaml

from tests.graph.program import Project, Run

KIT = ("--toolkit", "mykit:kit")
ME = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def changed(surestep: Run) -> Run:
    """The tool `double` with three settings changed by ann, then one of them by bob."""
    words = ("timeout_s=3", "retry.max_attempts=1", "breaker.cooldown_s=10")
    assert surestep("tools", "set", "double", *words, *KIT, "--by", "ann").code == 0
    assert surestep("tools", "set", "double", "timeout_s=4.5", *KIT, "--by", "bob").code == 0
    return surestep


def now(surestep: Run, name: str = "double") -> Any:
    return surestep("tools", *KIT, "show", name, "--json").json["now"]


def store(database_url: str, tool: str, settings: dict[str, Any]) -> None:
    """What an older declaration has left in the database."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO surestep.tool_settings (tool, settings, updated_by) VALUES (%s, %s, 'ann')",
            (tool, json.dumps(settings)),
        )


def test_what_is_changed_is_told_and_shown_beside_what_is_declared(surestep: Run) -> None:
    """From what to what; then in `show` with who and when, and in the list in a word."""
    said = surestep("tools", "set", "double", "timeout_s=3", "retry.max_attempts=1", *KIT)
    assert said.out == "double: timeout_s 8.0 as declared → 3, retry.max_attempts 3 as declared → 1\n"
    again = surestep("tools", "set", "double", "timeout_s=3", *KIT)
    assert (again.code, again.out) == (0, "double is so already: nothing was changed\n")
    shown = yaml.safe_load(surestep("tools", "show", "double", *KIT).out)
    assert (shown["timeout_s"], shown["retry"]["max_attempts"]) == (8.0, 3)
    found = shown["now"]["changed"]["timeout_s"]
    assert (found["declared"], found["now"], found["by"]) == (8.0, 3, ME)
    assert found["at"].startswith("20")
    row = next(line for line in surestep("tools", *KIT).out.splitlines() if line.startswith("double "))
    assert row.split()[:5] == ["double", "kit", "read", "low", "changed"]


def test_a_setting_goes_back_to_what_is_declared_alone_or_with_all_others(changed: Run) -> None:
    """`NAME=` takes one change back, `reset` all; each setting keeps who changed it last."""
    told = {name: each["by"] for name, each in now(changed)["changed"].items()}
    assert told == {"timeout_s": "bob", "retry.max_attempts": "ann", "breaker.cooldown_s": "ann"}
    back = changed("tools", "set", "double", "timeout_s=", *KIT, "--json").json
    assert back == {"tool": "double", "by": ME, "changes": {"timeout_s": {"before": 4.5}}}
    assert set(now(changed)["changed"]) == {"retry.max_attempts", "breaker.cooldown_s"}
    assert changed("tools", "reset", "double", *KIT).code == 0
    assert now(changed)["changed"] == {}


def test_history_tells_who_changed_what_when(changed: Run) -> None:
    """The newest first, of one tool or of all, as text and as JSON."""
    changed("tools", "disable", "send", *KIT)
    lines = changed("tools", "history").out.splitlines()[1:]
    assert [line.split()[2:4] for line in lines] == [["send", ME], ["double", "bob"], ["double", "ann"]]
    assert lines[1].endswith("timeout_s 3 → 4.5")
    found = changed("tools", "--json", "history", "double", *KIT).json["changes"]
    assert [(each["by"], each["changes"]) for each in found] == [
        ("bob", {"timeout_s": {"before": 3, "after": 4.5}}),
        ("ann", {"timeout_s": {"after": 3}, "retry.max_attempts": {"after": 1}, "breaker.cooldown_s": {"after": 10}}),
    ]
    assert len(changed("tools", "history", "--limit", "1", "--json").json["changes"]) == 1
    changed("tools", "history", "doubel", *KIT).refuses("did you mean double?")


def test_nothing_was_ever_changed_is_said(surestep: Run) -> None:
    """An empty record is no error."""
    assert surestep("tools", "history").out == "nothing was ever changed\n"
    assert surestep("tools", "history", "double", *KIT, "--json").json == {"changes": []}


SENSELESS = [
    (["double", "timeout_s=0"], ["timeout_s=0: should be greater than 0"]),
    (["double", "timeout_s=soon"], ["timeout_s='soon': should be a valid number"]),
    (["double", "timout_s=3"], ["did you mean timeout_s?"]),
    (["doubel", "timeout_s=3"], ["no tool 'doubel'; did you mean double?"]),
    (["doubel", "timout_s=3"], ["did you mean double?", "did you mean timeout_s?"]),
    (["send", "retry.max_attempts=2"], ["irreversible and has retries"]),
    (["send", "retry.max_attempts=2", "cache_ttl_s=9", "concurrency=0"], ["retries", "cached", "concurrency=0"]),
    (["double", "concurrency=99999999999999999999"], ["beyond 64 bits"]),
    (["double", "roles=[]"], ["no setting 'roles'"]),
    (["double", "answered_by=send"], ["no setting 'answered_by'"]),
    (["double", "zzz="], ["no setting 'zzz'"]),
    (["double", "timeout_s"], ["SETTING=VALUE", "timeout_s"]),
    (["double", "=3"], ["SETTING=VALUE"]),
    (["double", "timeout_s=3", "timeout_s=4"], ["twice"]),
    (["double", "timeout_s=3", "--by", " "], ["who changes it (by) is empty"]),
]


def test_what_makes_no_sense_is_refused_with_all_of_its_faults_and_changes_nothing(surestep: Run) -> None:
    """Exit 2, one sentence or a list, and neither a setting nor a row of the record."""
    for words, said in SENSELESS:
        surestep("tools", "set", *words, *KIT).refuses(*said)
    assert now(surestep)["changed"] == {}
    assert surestep("tools", "history", "--json").json == {"changes": []}


def test_a_call_that_failed_again_and_again_is_made_again_once_enabled(surestep: Run, project: Project) -> None:
    """Three runs fail, the fourth is refused without a call and says what lifts that; `enable` does."""
    order = ("run", "--plan", "broken.json", *KIT, "--json")
    step = {"id": "s1", "tool": "broken", "args": {"why": "it is broken"}, "reason": "a test"}
    project.write("broken.json", {"goal": "a test", "steps": [step]})
    codes = [surestep(*order).json["steps"][0]["failure"]["code"] for _ in range(4)]
    assert codes == ["NOT_FOUND"] * 3 + ["REPEATED_FAILURE"]
    assert "surestep tools enable broken" in surestep(*order).json["steps"][0]["failure"]["message"]
    told = surestep("tools", "enable", "broken", *KIT)
    assert told.out == "broken: failed calls that may be made again at once: 1\n"
    assert surestep(*order).json["steps"][0]["failure"]["code"] == "NOT_FOUND"
    assert surestep("tools", "enable", "broken", *KIT, "--json").json["forgiven"] == 1


def test_a_tool_is_switched_off_and_on(surestep: Run) -> None:
    """It is seen in the list; on again it is as declared, and twice is once."""
    assert surestep("tools", "disable", "double", *KIT).out == "double: enabled true as declared → false\n"
    assert "  disabled  " in surestep("tools", *KIT).out
    assert now(surestep)["enabled"] is False
    assert surestep("tools", "enable", "double", *KIT).code == 0
    assert (now(surestep)["enabled"], now(surestep)["changed"]) == (True, {})
    assert "nothing was changed" in surestep("tools", "enable", "double", *KIT).out
    assert len(surestep("tools", "history", "--json").json["changes"]) == 2
    surestep("tools", "disable", "doubel", *KIT).refuses("did you mean double?")


def test_options_may_stand_before_the_subcommand_everywhere(surestep: Run) -> None:
    """The toolkit and --json, before the word or after it."""
    assert surestep("tools", *KIT, "--json", "set", "double", "timeout_s=2").json["tool"] == "double"
    assert surestep("tools", *KIT, "disable", "double").code == 0
    assert surestep("tools", "--json", *KIT, "history", "double").json["changes"][0]["tool"] == "double"
    assert surestep("tools", *KIT, "--json", "enable", "double").json["changes"] == {"enabled": {"before": False}}
    assert surestep("tools", *KIT, "show", "double").code == 0
    assert "double" in {each["name"] for each in surestep("tools", *KIT, "--json").json["tools"]}


def test_a_breaker_is_shown(surestep: Run, database_url: str) -> None:
    """Closed with its last calls, open until when, open with its time over, and with a probe under way."""
    assert now(surestep)["breaker"] == {"status": "closed", "until": None, "last_calls": []}
    for state, state_shown, words in (
        ({"status": "closed", "window": [True, False]}, ["success", "failure"], ""),
        ({"status": "open", "since": 4e9}, [], "breaker open until "),
        ({"status": "open", "since": 1e9}, [], "breaker open: the next call probes"),
        ({"status": "half_open", "since": 4e9}, [], "breaker half-open"),
    ):
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "INSERT INTO surestep.tool_breakers (tool, state) VALUES ('double', %s) "
                "ON CONFLICT (tool) DO UPDATE SET state = excluded.state",
                (json.dumps(state),),
            )
        found = now(surestep)
        assert (found["breaker"]["status"], found["breaker"]["last_calls"]) == (state["status"], state_shown)
        assert found["state"].startswith(words) if words else found["state"] == ""
        assert words in surestep("tools", *KIT).out
    assert now(surestep)["breaker"]["until"].startswith("2096-")


def test_without_a_database_the_tools_are_listed_and_that_it_was_not_looked_at_is_said(
    surestep: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking needs no server, waits for none, and makes none."""
    monkeypatch.setenv("SURESTEP_DATABASE_URL", "postgresql://ann:topsecret@127.0.0.1:1/shop")
    listed = surestep("tools", *KIT)
    assert (listed.code, "double" in listed.out) == (0, True)
    assert "settings and breakers were not looked at: cannot connect" in listed.err
    assert "topsecret" not in listed.err
    assert surestep("tools", "show", "double", *KIT).code == 0
    shown = surestep("tools", "show", "double", *KIT, "--json").json
    assert (shown["now"], shown["looked_at"], "nothing listens" in shown["why"]) == (None, False, True)
    monkeypatch.delenv("SURESTEP_DATABASE_URL")
    found = surestep("tools", "--json", *KIT).json
    assert (found["looked_at"], "no database was made" in found["why"]) == (False, True)
    assert not (project.folder / ".surestep").exists()


def test_an_older_database_is_not_migrated_by_looking(
    surestep: Run, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who only looks changes nothing; who changes a setting brings the database up to date."""
    monkeypatch.setenv("SURESTEP_DATABASE_URL", empty_database_url)
    assert "not set up, or of an older version" in surestep("tools", *KIT, "--json").json["why"]
    assert surestep("tools", "disable", "double", *KIT).code == 0
    assert now(surestep)["enabled"] is False


def test_settings_that_say_nothing_any_more_are_told_and_can_be_taken_away(surestep: Run, database_url: str) -> None:
    """By `tools` and `doctor`, with the command that mends it: of a newer declaration, or of a tool that is gone."""
    store(database_url, "send", {"retry": {"max_attempts": 3}, "timeout_s": 2})
    store(database_url, "gone", {"enabled": False})
    assert "a stored setting is ignored" in surestep("tools", *KIT).out
    found = now(surestep, "send")
    assert list(found["ignored"]) == ["retry.max_attempts"]
    doctor = surestep("doctor", *KIT)
    assert doctor.code == 0
    assert "surestep tools set send retry.max_attempts= --toolkit mykit:kit" in doctor.out
    assert "gone, which is not registered here: enabled (surestep tools reset gone --toolkit mykit:kit)" in doctor.out
    assert surestep("tools", "set", "send", "timeout_s=3", *KIT).code == 0
    assert surestep("tools", "set", "send", "retry.max_attempts=", *KIT).code == 0
    assert surestep("tools", "reset", "gone", *KIT).out == "gone: enabled false → as declared\n"
    assert now(surestep, "send")["ignored"] == {}
    assert "all are on" in surestep("doctor", *KIT).out
    surestep("tools", "disable", "double", *KIT)
    assert "double: disabled" in surestep("doctor", *KIT).out
