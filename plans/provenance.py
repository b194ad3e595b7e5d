"""Where a value of an argument came from, as people are shown it and as policy reads it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Provenance(BaseModel):
    """The source of one value. `argument` is its path in the arguments ("recipient", "items[0].url"); `source` is
    "plan", "person", or what it was read from ("inputs.orders", "s1.email"); `tool` gave it, where a tool did. What is
    not `trusted` was, or was made from, text that a stranger may have written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str
    source: str
    tool: str | None = None
    trusted: bool = True
