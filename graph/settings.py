"""How Surestep is set up: defaults < surestep.toml < environment < call. Here, and for the database in
`checkpoints/location.py`, is where the environment is read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from checkpoints.location import DEFAULT_FOLDER, SETTINGS_FILE, read_file, read_values
from checkpoints.runs import Durability
from graph.setting_names import CONNECTION_PREFIX, OF_SECRETS, TABLES, UNPREFIXED, in_words, variable_of
from graph.variables import filled
from nodes.model_settings import PROMPT_TOKENS
from plans.errors import ConfigurationError
from plans.failure import ToolFailure
from plans.principals import PersonName, RoleName, TenantName
from plans.wording import kind_of, nearest
from tools.http.hosts import patterns, private_addresses
from tools.http.toolkit import MOST_BYTES
from tools.http.urls import parse
from tools.mcp.config import Server
from tools.openapi.config import Service
from tools.vault import NamedSecrets

NO_VERIFIER = "off"
"""The name of a verifier that says: no model is asked whether a plan still holds."""
ToolkitName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]


class TokenPrice(BaseModel):
    """What a million tokens of one model cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)


class Settings(BaseModel):
    """One field per setting; in the environment each is `SURESTEP_<NAME>`, save the two of OpenAI's clients.

    `folder` holds the embedded PostgreSQL, large artifacts and the archive, `output` what tools write for people.
    `input_root` is where clients of a server may name files. `connections` maps the name of an outside system to its
    URL (`SURESTEP_CONNECTION_SHOP=postgresql://…`).

    `lease_s` is how long a worker that cannot be reached keeps its runs. `durability` says when LangGraph's checkpoints
    are saved: "exit" where a drive ends, "async" or "sync" also between nodes, for those who look into a thread's
    history. `plan_canary` is the share of runs, in per cent, that a worker begins on a new version of the plan contract
    while workers of the version before still run (`plans/versions.py`). With `eager` the reads at the beginning of a
    plan start while the model still writes the rest.

    `on_unplannable` says whether a person is asked when no plan can be made, or the run ends with the reason at once.
    `review` says which plans a person looks at before they run, whatever a caller asks: none, the first, or every
    revision. `approval_expires_s` is how long a question to a person waits before silence counts as a no; None
    ("none"): for ever. `notify_url` is told of questions and of runs that fail, in requests signed with
    `notify_secret`. `sweep_every_s` is how often a server that runs the graph looks for what was answered, or not in
    time; None ("none"): never. `server_url` is the server by which runs go on that were begun on it, `server_token`
    what it asks for.

    `verifier_model` is asked whether a plan still holds, else `small_model`; "off": none is. `structured_output` says
    how the model's endpoint can be held to a schema; "auto" finds out. A question to a model has `model_timeout_s`,
    each of its requests `model_first_token_s` to begin the answer. A planning prompt is cut to `prompt_tokens`, by
    estimate, as far as that can be. `prices` are what a million tokens of a model cost
    (`SURESTEP_PRICES="name=0.5/1.5"`: of prompts, of completions).

    `toolkits` are `module:attr` references, comma-separated in the environment. `mcp` are toolkits of MCP servers,
    `openapi` those of services with an OpenAPI document, by name. `http_hosts` are those that the tool `http` may read
    from, `http_private_hosts` those whose addresses need not be public (name=address), for it and for toolkits made
    from documents; both comma-separated in the environment. `http_certificates` is a file of authorities beside the
    usual ones.

    `user`, `roles` and `tenant` say who works on this machine, without a word the operating system's user, who has no
    role; `start_roles` are those that may start runs, none: all. A server asks its callers for tokens that `auth_key`
    verifies, or what stands in `auth_key_file`: a secret of at least 32 bytes (HS256), or a public key in PEM (EdDSA,
    ES256, RS256); they have to be made for `auth_audience`, and by `auth_issuer` where one is named. `auth_visible_to`
    says whether a thread is there for its whole tenant or for its owner alone. `policy` is the file with the rules that
    say who may do what, and who is asked (`docs/policy.md`).

    `secrets` are what `${secrets.NAME}` stands for (`SURESTEP_SECRET_NAME`), `sealing_key` what secrets of runs are
    encrypted with, `privacy` what finds personal data (`docs/privacy.md`). `audit_key` signs the seals of the audit, a
    secret of at least 32 bytes that is not to be in the database.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str | None = None
    folder: Path = DEFAULT_FOLDER
    artifacts_url: str | None = None
    archive_url: str | None = None
    output: Path = Path("surestep-out")
    input_root: Path | None = None
    pool_size: int = Field(default=10, ge=2, le=200)
    prepare_threshold: int | None = Field(default=5, ge=0)
    lease_s: float = Field(default=30.0, ge=1, le=600)
    durability: Durability = "exit"
    plan_canary: float = Field(default=100.0, ge=0, le=100, allow_inf_nan=False)
    on_unplannable: Literal["ask", "refuse"] = "ask"
    approval_expires_s: float | None = Field(default=300.0, gt=0, le=31_536_000)
    notify_url: str | None = None
    notify_secret: SecretStr | None = Field(default=None, min_length=16)
    sweep_every_s: float | None = Field(default=5.0, ge=0.1, le=3_600)
    server_url: str | None = None
    server_token: SecretStr | None = None
    review: Literal["none", "first", "every"] = "none"
    model: str | None = None
    small_model: str | None = None
    verifier_model: str | None = None
    structured_output: Literal["auto", "json_schema", "tools", "text"] = "auto"
    model_first_token_s: float = Field(default=8.0, gt=0, le=3_600)
    eager: bool = False
    prompt_tokens: int = Field(default=PROMPT_TOKENS, ge=1_000, le=10_000_000)
    model_timeout_s: float = Field(default=60.0, gt=0, le=3_600)
    prices: dict[str, TokenPrice] = Field(default_factory=dict)
    base_url: str | None = None
    api_key: SecretStr | None = None
    toolkits: tuple[str, ...] = ()
    templates: Path | None = None
    policy: Path | None = None
    connections: dict[str, str] = Field(default_factory=dict)
    http_hosts: tuple[str, ...] = ()
    http_private_hosts: tuple[str, ...] = ()
    http_max_bytes: int = Field(default=MOST_BYTES, ge=1_024, le=100_000_000)
    http_certificates: Path | None = None
    mcp: dict[ToolkitName, Server] = Field(default_factory=dict, repr=False)
    openapi: dict[ToolkitName, Service] = Field(default_factory=dict, repr=False)
    user: PersonName | None = None
    roles: tuple[RoleName, ...] = ()
    tenant: TenantName = ""
    start_roles: tuple[RoleName, ...] = ()
    auth_key: SecretStr | None = None
    auth_key_file: Path | None = None
    auth_audience: str | None = None
    auth_issuer: str | None = None
    auth_visible_to: Literal["tenant", "owner"] = "tenant"
    sealing_key: SecretStr | None = None
    secrets: NamedSecrets = Field(default_factory=dict, repr=False)
    privacy: Literal["builtin", "presidio", "off"] = "builtin"
    audit_key: SecretStr | None = Field(default=None, min_length=32)

    @field_validator("toolkits", "http_hosts", "http_private_hosts", "roles", "start_roles", mode="before")
    @classmethod
    def _separated_by_commas(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("prices", mode="before")
    @classmethod
    def _as_pairs(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return {
            name.strip(): _price(name, said) for name, said in (each.rpartition("=")[::2] for each in value.split(","))
        }

    @field_validator("prepare_threshold", "approval_expires_s", "sweep_every_s", mode="before")
    @classmethod
    def _none_in_words(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.lower() in ("none", "off") else value

    @field_validator("notify_url", "server_url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                parse(value)
            except ToolFailure:  # what it says repeats parts of the URL
                raise ValueError("an absolute http or https URL is expected, without a user in it") from None
        return value

    @field_validator("http_hosts")
    @classmethod
    def _reachable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        patterns(value)
        return value

    @field_validator("http_private_hosts")
    @classmethod
    def _reachable_inside(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        private_addresses(value)
        return value

    @field_validator("folder", "output", "input_root", "templates", "policy", "http_certificates", "auth_key_file")
    @classmethod
    def _at_home(cls, value: Path | None) -> Path | None:
        """`~/…` in a file or a compose file means the home folder, as it does in a shell."""
        return value.expanduser() if value is not None and value.parts[:1] == ("~",) else value

    @classmethod
    def load(
        cls, file: Path | None = None, *, environment: Mapping[str, str] | None = None, **overrides: Any
    ) -> Settings:
        """The settings of this process. An override of None says nothing. Reads a file: not for an event loop.

        Raises ConfigurationError that names each wrong setting, where it stands, what it is, and what it should be.
        """
        environment = os.environ if environment is None else environment
        _refuse_unknown(read_file(file), f"in {file or SETTINGS_FILE}")
        _refuse_unknown(overrides, "in the call")
        said = read_values(tuple(cls.model_fields), file, environment)
        said |= filled({name: said[name] for name in TABLES if name in said}, environment, str(file or SETTINGS_FILE))
        for name, variable in UNPREFIXED.items():
            if environment.get(variable):
                said[name] = environment[variable]
        for table, prefix in (("connections", CONNECTION_PREFIX), ("secrets", OF_SECRETS)):
            if found := _prefixed(environment, prefix):
                said[table] = {**_table(table, said.get(table, {}), file), **found}
        said |= {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls.model_validate(said)
        except ValidationError as error:
            raise ConfigurationError(in_words(error, file, environment, overrides)) from None


def _price(name: str, said: str) -> dict[str, str]:
    prompt, slash, completion = said.partition("/")
    if not name.strip() or not slash:
        raise ValueError("expected NAME=PROMPT/COMPLETION per model, per million tokens, such as gpt-x=0.5/1.5")
    return {"prompt": prompt.strip(), "completion": completion.strip()}


def unknown_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Variables that look like ours and say nothing, each with the one that was probably meant."""
    known = {variable_of(name) for name in Settings.model_fields if name not in ("connections", *TABLES)}
    strange = [
        name
        for name in environment
        if name.startswith("SURESTEP_") and not name.startswith((CONNECTION_PREFIX, OF_SECRETS)) and name not in known
    ]
    bare = {name.removeprefix("SURESTEP_"): name for name in known}
    return {name: bare.get(nearest(name.removeprefix("SURESTEP_"), bare) or "") for name in sorted(strange)}


def _refuse_unknown(said: Mapping[str, Any], where: str) -> None:
    strange = [name for name in said if name not in Settings.model_fields]
    if strange:
        told = "; ".join(f"{name!r}{_meant(name)}" for name in strange)
        raise ConfigurationError(f"there is no such setting {where}: {told}")


def _meant(name: str) -> str:
    close = nearest(name, Settings.model_fields)
    return f", did you mean {close}?" if close else f" (there are {', '.join(Settings.model_fields)})"


def _prefixed(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix).lower(): value
        for key, value in environment.items()
        if key.startswith(prefix) and key != prefix and value
    }


def _table(name: str, value: Any, file: Path | None) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ConfigurationError(
        f'{name} in {file or SETTINGS_FILE} is {kind_of(value)}, and must be a table: [{name}] shop = "…"'
    )


def editor() -> list[str]:
    """The person's editor as a command, as shells name it."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
