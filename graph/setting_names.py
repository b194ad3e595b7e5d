"""What settings are called, which of them are secret, and what is told of those that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from checkpoints.location import SETTINGS_FILE
from plans.wording import kind_of

UNPREFIXED = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
"""Settings that have a name of their own in the environment: the one every OpenAI client reads."""
CONNECTION_PREFIX = "SURESTEP_CONNECTION_"
OF_SECRETS = "SURESTEP_SECRET_"
SECRET = frozenset(
    {"api_key", "auth_key", "database_url", "artifacts_url", "archive_url", "connections", "mcp", "openapi",
     "notify_url", "notify_secret", "server_token", "sealing_key", "secrets", "audit_key"}
)  # fmt: skip
"""Settings whose value is never repeated in a message."""
TABLES = ("mcp", "openapi", "secrets")
"""Settings that are tables of toolkits, or of secrets: with `${NAME}` for variables of the environment. Toolkits stand
only in the file."""


def variable_of(name: str) -> str:
    """What a setting is called in the environment."""
    return UNPREFIXED.get(name, f"SURESTEP_{name.upper()}")


def in_words(
    error: ValidationError, file: Path | None, environment: Mapping[str, str], overrides: Mapping[str, Any]
) -> str:
    """Every wrong setting. What may hold a password or a key is not repeated."""
    told = []
    for item in error.errors(include_url=False):
        name = str(item["loc"][0])
        place = "in the call" if overrides.get(name) is not None else f"in {file or SETTINGS_FILE}"
        if environment.get(variable_of(name)) and overrides.get(name) is None:
            place = f"from {variable_of(name)}"
        came = kind_of(item["input"]) if name in SECRET else repr(item["input"])
        why = item["msg"].removeprefix("Value error, ")
        if item["type"] in ("string_too_short", "too_short"):
            why = f"it needs at least {item['ctx']['min_length']} characters"
        told.append(f"{'.'.join(map(str, item['loc']))} {place} is {came}: {why[:1].lower()}{why[1:]}")
    return "settings that cannot be used: " + "; ".join(told)
