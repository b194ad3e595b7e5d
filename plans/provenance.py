"""Where a value of an argument came from, as people are shown it and as policy reads it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

PLAN = "plan"
"""What the plan itself says, as its author wrote it before anything was read."""
PERSON = "person"
"""What a person has written in the place of what the plan said."""
DEFAULT = "default"
"""What nobody has given: the tool's own default."""
REPLAN = "replan"
"""What a model has written into the plan after the run had met text that is not trusted."""


class Provenance(BaseModel):
    """The source of one value. `argument` is its path in the arguments ("recipient", "items[0].url"); `source` is
    "plan", "person", "default", "replan", or what it was read from ("inputs.orders", "s1.email"); `tool` gave it,
    where a tool did. What is not `trusted` was, or was made from, text that a stranger may have written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str
    source: str
    tool: str | None = None
    trusted: bool = True
