"""What people declare about tools, in code or in a settings file: frozen values, and nothing unknown is let pass."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Declared(BaseModel):
    """A declaration. A field that it does not have is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
