"""MCP servers in the settings file: what they say, variables of the environment, and secrets that are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.settings import Settings
from plans.errors import ConfigurationError

GITHUB = """
[mcp.github]
url = "https://mcp.example.com/${PATH_OF_IT}?key=${KEY_OF_IT}"
headers = { Authorization = "Bearer ${GITHUB_TOKEN}", Note = "$${x} costs $5" }
without = ["delete_repository"]
[mcp.github.tools.create_issue]
effect = "idempotent"
timeout_s = 20
[mcp.clock]
command = "uvx mcp-server-time '--zone=Europe/Berlin'"
env = { ZONE = "${ZONE}" }
"""
ENVIRONMENT = {"PATH_OF_IT": "mcp", "KEY_OF_IT": "k3y-topsecret", "GITHUB_TOKEN": "ghp_topsecret", "ZONE": "utc"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, **environment: str) -> Settings:
    """The settings of this text as `surestep.toml`."""
    Path("surestep.toml").write_text(text, "utf-8")
    return Settings.load(environment=environment)


def test_servers_stand_in_the_file_with_variables_for_secrets() -> None:
    """Each `${NAME}` is the variable; `$${` and other dollars stay; a command may be one text."""
    servers = load(GITHUB, **ENVIRONMENT).mcp
    assert servers["github"].url == "https://mcp.example.com/mcp?key=k3y-topsecret"
    assert servers["github"].headers == {"Authorization": "Bearer ghp_topsecret", "Note": "${x} costs $5"}
    assert servers["github"].tools == {"create_issue": {"effect": "idempotent", "timeout_s": 20}}
    assert servers["clock"].command == ("uvx", "mcp-server-time", "--zone=Europe/Berlin")
    assert servers["clock"].env == {"ZONE": "utc"}


def test_missing_variables_are_told_all_at_once() -> None:
    """With the place that wants each of them."""
    with pytest.raises(ConfigurationError) as error:
        load(GITHUB, KEY_OF_IT="k3y", PATH_OF_IT="")
    said = str(error.value)
    assert said.startswith("settings in surestep.toml name variables that are not there: ")
    for missing in (
        "mcp.github.url wants PATH_OF_IT",
        "headers.Authorization wants GITHUB_TOKEN",
        "clock.env.ZONE wants",
    ):
        assert missing in said
    assert "k3y" not in said


@pytest.mark.parametrize("written", ["${A B}", "${", "${A", "${}"])
def test_what_is_no_variable_is_told(written: str) -> None:
    """A half-written one is a mistake, not a text."""
    with pytest.raises(ConfigurationError, match="is no variable"):
        load(f'[mcp.a]\ncommand = ["x", "{written}"]', A="a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[mcp.a]\nurl = "https://h"\ncommand = ["x"]', "either a command or a url"),
        ("[mcp.a]\nonly = []", "either a command or a url"),
        ('[mcp.a]\nurl = "ftp://h/${T}"', "begins with http:// or https://"),
        ('[mcp.a]\nurl = "https://h"\nenv = { T = "${T}" }', "env and cwd are for a server with a command"),
        ('[mcp.a]\ncommand = ["x"]\nheaders = { T = "${T}" }', "headers are for a server with a url"),
        ('[mcp.a]\ncommand = ["x"]\nheadders = { T = "${T}" }', "mcp.a.headders in surestep.toml"),
        (
            '[mcp.a]\ncommand = ["x"]\n[mcp.a.tools.t]\nefect = "read"',
            "no setting 'efect' here; did you mean 'effect'?",
        ),
        ('[mcp.a]\ncommand = ["x"]\n[mcp.a.every]\nname = "t"', "no setting 'name' here"),
        ('[mcp.a]\ncommand = ["x"]\ntrust_annotations = true\nignore_annotations = true', "contradict each other"),
        ('[mcp."a b"]\ncommand = ["x"]', "mcp.a b"),
        ('[mcp.a]\ncommand = ["x"]\nstart_timeout_s = 0', "mcp.a.start_timeout_s"),
        ('mcp = "x"', "mcp in surestep.toml is text"),
        ('[mcp.a]\nurl = "http://h:99999/${T}"', "port out of range"),
        ('[mcp.a]\nurl = "http://[h/${T}"', "mcp.a in surestep.toml"),
        ('[mcp.a]\nurl = "https://h"\nheaders = { "X Y" = "${T}" }', "'X Y' is no name of a header"),
        ('[mcp.a]\nurl = "https://h"\nheaders = { Host = "${T}" }', "'Host' is no name of a header"),
        ('[mcp.a]\nurl = "https://h"\nheaders = { Authorization = "Bearer ü${T}" }', "Authorization holds what"),
        ('[mcp.a]\nurl = "https://h"\nheaders = { Authorization = "${T}\\nX: y" }', "Authorization holds what"),
    ],
)
def test_a_server_that_makes_no_sense_is_told(text: str, said: str) -> None:
    """In a sentence with its place, and never with a value."""
    with pytest.raises(ConfigurationError) as error:
        load(text, T="topsecret")
    assert said in str(error.value)
    assert "topsecret" not in str(error.value)


def test_settings_show_no_secret() -> None:
    """Neither as they print themselves nor in how a server is named."""
    settings = load(GITHUB, **ENVIRONMENT)
    assert "topsecret" not in repr(settings) + repr(settings.mcp["github"]) + settings.mcp["github"].shown
    assert settings.mcp["github"].shown == "https://mcp.example.com/mcp"
    assert set(settings.mcp["github"].secrets) >= {"ghp_topsecret", "key=k3y-topsecret", "Bearer ghp_topsecret"}
