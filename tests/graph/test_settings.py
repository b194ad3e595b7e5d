"""Settings: defaults < file < environment < call, one test per edge; what is wrong is told with where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.setting_names import TABLES, variable_of
from graph.settings import Settings, unknown_variables
from plans.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(text: str, name: str = "surestep.toml") -> Path:
    """A settings file in the working folder."""
    path = Path(name)
    path.write_text(text, "utf-8")
    return path


def test_nothing_said_gives_the_defaults() -> None:
    """No file, no variable, no call: the embedded database in `.surestep`, no model, no toolkits."""
    settings = Settings.load(environment={})
    assert (settings.database_url, settings.folder, settings.output) == (None, Path(".surestep"), Path("surestep-out"))
    assert (settings.model, settings.toolkits, settings.pool_size) == (None, (), 10)


def test_the_file_wins_over_the_defaults() -> None:
    """`surestep.toml` of the working folder is read without being named."""
    said('model = "m"\ntoolkits = ["shop:kit"]\npool_size = 4\n[connections]\nshop = "postgresql://s/d"\n')
    settings = Settings.load(environment={})
    assert (settings.model, settings.toolkits, settings.pool_size) == ("m", ("shop:kit",), 4)
    assert settings.connections == {"shop": "postgresql://s/d"}


def test_the_environment_wins_over_the_file() -> None:
    """A variable replaces one value and leaves the others; a connection is added to those of the file."""
    said('model = "m"\npool_size = 4\napi_key = "of the file"\n[connections]\nshop = "postgresql://s/d"\n')
    environment = {
        "SURESTEP_MODEL": "n",
        "SURESTEP_TOOLKITS": "a:kit, b:kit,",
        "OPENAI_API_KEY": "of the environment",
        "SURESTEP_CONNECTION_BANK": "postgresql://b/d",
    }
    settings = Settings.load(environment=environment)
    assert (settings.model, settings.pool_size, settings.toolkits) == ("n", 4, ("a:kit", "b:kit"))
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "of the environment"
    assert settings.connections == {"shop": "postgresql://s/d", "bank": "postgresql://b/d"}


def test_the_call_wins_over_the_environment() -> None:
    """What a program passes is what counts; None says nothing."""
    said('model = "m"\n')
    settings = Settings.load(environment={"SURESTEP_MODEL": "n", "SURESTEP_POOL_SIZE": "7"}, model="o", pool_size=None)
    assert (settings.model, settings.pool_size) == ("o", 7)


def test_an_empty_variable_says_nothing() -> None:
    """`SURESTEP_MODEL=` in a shell or compose file leaves what the file says."""
    said('model = "m"\napi_key = "k"\n')
    settings = Settings.load(environment={"SURESTEP_MODEL": "", "OPENAI_API_KEY": "", "SURESTEP_CONNECTION_SHOP": ""})
    assert (settings.model, settings.api_key is not None, settings.connections) == ("m", True, {})


def test_a_named_file_is_read_instead_of_the_default() -> None:
    """`--config other.toml` leaves surestep.toml alone, and must be there."""
    said('model = "m"\n')
    assert Settings.load(said('model = "o"\n', "other.toml"), environment={}).model == "o"
    with pytest.raises(ConfigurationError, match=r"the settings file none\.toml does not exist"):
        Settings.load(Path("none.toml"), environment={})


def test_every_setting_has_a_variable() -> None:
    """Each field can be said in the environment, under its name or that of OpenAI's clients."""
    values = {
        "database_url": "postgresql://h/d", "folder": "f", "artifacts_url": "s3://b", "archive_url": "s3://c",
        "output": "o", "input_root": "i", "pool_size": "3", "prepare_threshold": "none", "model": "m",
        "small_model": "s", "verifier_model": "v", "base_url": "http://h/v1", "api_key": "k", "toolkits": "a:b",
        "templates": "t", "lease_s": "9", "durability": "sync", "http_hosts": "a.example.com, *.example.org:8443",
        "http_private_hosts": "in.example.com=10.0.0.5", "http_max_bytes": "4096", "http_certificates": "c.pem",
        "structured_output": "tools", "on_unplannable": "refuse", "plan_canary": "10", "review": "every",
        "model_first_token_s": "30", "model_timeout_s": "90", "prompt_tokens": "8000", "eager": "true",
        "prices": "org/gpt-x=0.5/1.5, small = 0 / 0.25", "sealing_key": "k" * 16, "privacy": "off",
        "audit_key": "a" * 32,
        "approval_expires_s": "none", "sweep_every_s": "off",
        "notify_url": "https://hooks.example.com/surestep?to=ann", "notify_secret": "0123456789abcdef",
        "server_url": "http://127.0.0.1:2024", "server_token": "t", "policy": "p",
        "user": "ann", "roles": "support, finance", "tenant": "acme", "start_roles": "support",
        "auth_key": "x" * 32, "auth_key_file": "k.pem", "auth_audience": "surestep", "auth_issuer": "https://id.example.com",
        "auth_visible_to": "owner",
    }  # fmt: skip
    settings = Settings.load(environment={variable_of(name): value for name, value in values.items()})
    assert set(values) == set(Settings.model_fields) - {"connections", *TABLES}
    assert all(getattr(settings, name) != field.default or name == "connections" for name, field in Settings.model_fields.items())  # fmt: skip  # noqa: E501
    assert variable_of("base_url") == "OPENAI_BASE_URL"
    assert {name: (price.prompt, price.completion) for name, price in settings.prices.items()} == {
        "org/gpt-x": (0.5, 1.5),
        "small": (0.0, 0.25),
    }


@pytest.mark.parametrize("prices", ["gpt-x", "gpt-x=3", "=1/2", "gpt-x=a/b", "gpt-x=-1/2", "gpt-x=inf/1"])
def test_prices_that_are_none_are_refused(prices: str) -> None:
    """A misspelled price is not taken as free of charge."""
    with pytest.raises(ConfigurationError, match="SURESTEP_PRICES"):
        Settings.load(environment={"SURESTEP_PRICES": prices})


def test_home_is_home_in_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/…` means what it means in a shell."""
    monkeypatch.setenv("HOME", "/home/ann")
    said('output = "~/reports"\nfolder = "~surestep"\n')
    settings = Settings.load(environment={})
    assert (settings.output, settings.folder) == (Path("/home/ann/reports"), Path("~surestep"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modle = "m"', "no such setting in surestep.toml: 'modle', did you mean model?"),
        ('database-url = "x"', "'database-url', did you mean database_url?"),
        ('[surestep]\nmodel = "m"', "'surestep' (there are database_url, folder"),
        ('pool_size = "ten"', "pool_size in surestep.toml is 'ten': input should be a valid integer"),
        ("pool_size = 1", "pool_size in surestep.toml is 1: input should be greater than or equal to 2"),
        ("model = 3", "model in surestep.toml is 3: input should be a valid string"),
        ('connections = "x"', "connections in surestep.toml is text"),
        ("model = ", "the settings file surestep.toml cannot be read"),
        ('http_hosts = ["https://a.example.com/"]', "should be a host alone, without https:// and without a path"),
        ('http_private_hosts = ["a.example.com"]', "should be name=address, such as intranet.example.com=10.0.0.5"),
        ('http_private_hosts = ["meta.example.com=169.254.169.254"]', "metadata services, link-local"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text: str, words: str) -> None:
    """The setting, where it stands, what it is, and what it should be or was meant to be."""
    said(text)
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(environment={})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_that_is_wrong_is_told_at_once_and_by_its_place() -> None:
    """A value of the environment is named by its variable, one of the call as such."""
    said("prepare_threshold = -1\n")
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(environment={"SURESTEP_POOL_SIZE": "many"}, model=3)
    for words in ("prepare_threshold in surestep.toml", "pool_size from SURESTEP_POOL_SIZE", "model in the call"):
        assert words in str(refused.value)


def test_an_unknown_setting_in_a_call_is_refused() -> None:
    """A misspelled keyword does not silently say nothing."""
    with pytest.raises(
        ConfigurationError, match="no such setting in the call: 'databse_url', did you mean database_url"
    ):
        Settings.load(environment={}, databse_url="x")


@pytest.mark.parametrize("name", ["api_key", "database_url", "artifacts_url", "archive_url"])
def test_a_wrong_secret_is_not_repeated(name: str) -> None:
    """Not what it is, only what kind of thing."""
    said(f'{name} = ["topsecret"]\n')
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(environment={})
    assert f"{name} in surestep.toml is a list" in str(refused.value)
    assert "topsecret" not in str(refused.value)


@pytest.mark.parametrize("value", ["none", "OFF"])
def test_prepared_statements_can_be_turned_off(value: str) -> None:
    """A pgbouncer in front of the database may need it."""
    assert Settings.load(environment={"SURESTEP_PREPARE_THRESHOLD": value}).prepare_threshold is None


def test_variables_that_say_nothing_are_found() -> None:
    """What looks like ours and is not, each with what was probably meant."""
    environment: dict[str, Any] = {
        "SURESTEP_MODLE": "m", "SURESTEP_ZZZZZZ": "", "SURESTEP_MODEL": "m", "SURESTEP_CONNECTION_SHOP": "u", "A": "b",
    }  # fmt: skip
    assert unknown_variables(environment) == {"SURESTEP_MODLE": "SURESTEP_MODEL", "SURESTEP_ZZZZZZ": None}
