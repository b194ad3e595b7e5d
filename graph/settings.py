"""How Surestep is set up: defaults < surestep.toml < environment < call. Here, and for the database in
`checkpoints/location.py`, is where the environment is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from checkpoints.location import DEFAULT_FOLDER, read_values
from plans.errors import ConfigurationError

UNPREFIXED = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
"""Settings that have a name of their own in the environment: the one every OpenAI client reads."""
CONNECTION_PREFIX = "SURESTEP_CONNECTION_"


class Settings(BaseModel):
    """One field per setting; in the environment each is `SURESTEP_<NAME>`, save the two of OpenAI's clients.

    `folder` holds the embedded PostgreSQL and large artifacts, `output` what tools write for people. `toolkits` are
    `module:attr` references, comma-separated in the environment. `connections` maps the name of an outside system to
    its URL (`SURESTEP_CONNECTION_SHOP=postgresql://…`). `input_root` is where clients of a server may name files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str | None = None
    folder: Path = DEFAULT_FOLDER
    artifacts_url: str | None = None
    output: Path = Path("surestep-out")
    input_root: Path | None = None
    pool_size: int = Field(default=10, ge=2, le=200)
    prepare_threshold: int | None = Field(default=5, ge=0)
    model: str | None = None
    small_model: str | None = None
    verifier_model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    toolkits: tuple[str, ...] = ()
    templates: Path | None = None
    connections: dict[str, str] = Field(default_factory=dict)

    @field_validator("toolkits", mode="before")
    @classmethod
    def _separated_by_commas(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("prepare_threshold", mode="before")
    @classmethod
    def _none_in_words(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.lower() in ("none", "off") else value

    @classmethod
    def load(
        cls, file: Path | None = None, *, environment: Mapping[str, str] | None = None, **overrides: Any
    ) -> Settings:
        """The settings of this process. An override of None says nothing. Reads a file: not for an event loop.

        Raises ConfigurationError that names each wrong setting, what it is, and what it should be.
        """
        environment = os.environ if environment is None else environment
        said = read_values(tuple(cls.model_fields), file, environment)
        for name, variable in UNPREFIXED.items():
            if environment.get(variable):
                said[name] = environment[variable]
        if found := _connections(environment):
            said["connections"] = {**said.get("connections", {}), **found}
        said |= {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls.model_validate(said)
        except ValidationError as error:
            raise ConfigurationError(_in_words(error)) from None


def _connections(environment: Mapping[str, str]) -> dict[str, str]:
    named = {key.removeprefix(CONNECTION_PREFIX).lower(): value for key, value in environment.items() if value}
    return {name: value for name, value in named.items() if f"{CONNECTION_PREFIX}{name.upper()}" in environment}


def _in_words(error: ValidationError) -> str:
    wrong = [
        f"{'.'.join(map(str, item['loc']))} is {item['input']!r}: {item['msg']}"
        for item in error.errors(include_url=False)
        if item["loc"][0] != "api_key"
    ]
    return "settings that cannot be used: " + "; ".join(wrong or ["api_key must be text"])
