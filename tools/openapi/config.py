"""How a service is reached and what of it may be used, as `openapi_toolkit` and the settings file say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from plans.wording import nearest
from tools.spec import ToolSpec

ONLY_HERE = frozenset({"idempotency_header"})
"""What is said about an operation beside the fields of a ToolSpec."""
_OURS = frozenset({"isolation", "to_configure"})


class Service(BaseModel):
    """A service described by an OpenAPI 3 document, a file of JSON or YAML.

    `base_url` replaces the document's `servers`. `auth` gives by the name of a security scheme its secret: a token, a
    key, or `user:password`; `headers` go with every request, for a document that names no scheme. `only` and `without`
    choose among the operations by the names of their tools, with * for any letters; `prefix` begins these names.
    `tools` says by such a name what a ToolSpec declares, and `idempotency_header`, the header that takes the key of an
    effect; `every` the same for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    document: Path | dict[str, Any]
    base_url: str | None = None
    auth: dict[str, SecretStr] = Field(default_factory=dict)
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    prefix: str = Field("", pattern=r"^[A-Za-z0-9_-]{0,40}$")
    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    every: dict[str, Any] = Field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("auth", "headers")
    @classmethod
    def _sendable(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        """What cannot stand in a header is refused here, where the message does not hold it."""
        for name, secret in value.items():
            said = secret.get_secret_value()
            if not said or not said.isascii() or not said.isprintable() or said != said.strip():
                raise ValueError(f"{name} is empty, or holds what a header cannot hold")
        return value

    @field_validator("every")
    @classmethod
    def _known_fields(cls, value: dict[str, Any]) -> dict[str, Any]:
        _refuse_unknown(value, _OURS | {"name", "description"})
        return value

    @field_validator("tools")
    @classmethod
    def _known_fields_of_tools(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for policy in value.values():
            _refuse_unknown(policy, _OURS)
        return value


def _refuse_unknown(policy: dict[str, Any], refused: frozenset[str]) -> None:
    known = [name for name in (*ToolSpec.model_fields, *ONLY_HERE) if name not in refused]
    for name in policy:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
            raise ValueError(f"an operation has no setting {name!r} here; {hint}")
