"""What `http` gives back."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from plans.values import JSON


class Fetched(BaseModel):
    """An answer. `json` holds the value of a JSON body, `text` any other body, cut off at the size limit where
    `truncated` says so. `url` is the last one of the redirects, `headers` those that describe the body."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int
    url: str
    media_type: str
    headers: dict[str, str]
    value: JSON = Field(None, serialization_alias="json", description="the value of a JSON body")
    text: str | None = None
    truncated: bool = False
