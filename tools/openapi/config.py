"""How a service is reached and what of it may be used, as `openapi_toolkit` and the settings file say it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, field_validator

from tools.http.messages import is_header
from tools.policies import Policies

ONLY_HERE = frozenset({"idempotency_header"})
"""What is said about an operation beside the fields of a ToolSpec."""


class Service(Policies):
    """A service described by an OpenAPI 3 document, a file of JSON or YAML.

    `base_url` replaces the document's `servers`. `auth` gives by the name of a security scheme its secret: a token, a
    key, or `user:password`; `headers` go with every request, for a document that names no scheme. `only` and `without`
    choose among the operations by the names of their tools, with * for any letters; `prefix` begins these names.
    `tools` says by such a name what a ToolSpec declares, and `idempotency_header`, the header that takes the key of an
    effect; `every` the same for all.
    """

    beside = ONLY_HERE

    document: Path | dict[str, Any]
    base_url: str | None = None
    auth: dict[str, SecretStr] = Field(default_factory=dict)
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    prefix: str = Field("", pattern=r"^[A-Za-z0-9_-]{0,40}$")

    @field_validator("document", mode="before")
    @classmethod
    def _a_file(cls, value: Any) -> Any:
        """The document's value, or its file; `~/` is the home folder, as it is in a shell."""
        if isinstance(value, Path | str) and str(value):
            return Path(value).expanduser() if str(value).startswith("~/") else Path(value)
        if isinstance(value, Mapping) and value:
            return dict(value)
        raise ValueError("it should be the name of a file")

    @field_validator("headers")
    @classmethod
    def _named(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name in value:
            if not is_header(name):
                raise ValueError(f"{name!r} is no name of a header that can be set")
        return value

    @field_validator("auth", "headers")
    @classmethod
    def _sendable(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        """What cannot stand in a header is refused here, where the message does not hold it."""
        for name, secret in value.items():
            said = secret.get_secret_value()
            if not said or not said.isascii() or not said.isprintable() or said != said.strip():
                raise ValueError(f"the secret {name} is empty, or holds what a header cannot hold")
        return value
