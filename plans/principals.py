"""Who acts: the person or program behind a goal, a decision or a look, as the server knows it and no client can say."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Principal(BaseModel):
    """A name, what it may act as, and whose runs it sees. `tenant` "" is the only one where there are no tenants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    roles: tuple[str, ...] = ()
    tenant: str = Field("", max_length=200)

    def is_one_of(self, roles: tuple[str, ...]) -> bool:
        """Whether it has one of these roles; where none is named everybody has."""
        return not roles or not set(roles).isdisjoint(self.roles)
