"""Who acts: the person or program behind a goal, a decision or a look, as the server knows it and no client can say."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plans.errors import NotPermitted
from plans.values import printable
from plans.wording import listed

TENANT = r"^(?:[A-Za-z0-9][A-Za-z0-9._-]*)?$"
"""A tenant's name is also that of its folder of inputs."""


def _can_be_shown(name: str) -> str:
    """A name stands in records and on terminals: nothing in it may hide or turn round what follows."""
    if not name.isprintable() or name != name.strip():
        raise ValueError("printable characters only, and no space at the ends")
    return name


PersonName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_can_be_shown)]
RoleName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\s,]+$"), AfterValidator(_can_be_shown)]
TenantName = Annotated[str, Field(max_length=100, pattern=TENANT)]


class Principal(BaseModel):
    """A name, what it may act as, and whose runs it sees. `tenant` "" is the only one where there are no tenants, and
    one like any other where there are: it sees no other's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PersonName
    roles: tuple[RoleName, ...] = ()
    tenant: TenantName = ""

    def is_one_of(self, roles: tuple[str, ...]) -> bool:
        """Whether it has one of these roles; where none is named everybody has."""
        return not roles or not set(roles).isdisjoint(self.roles)

    def acting_in(self, wanted: str | None) -> str | None:
        """The one role that a run of this principal has: the wanted one, else its only one. Who has several and names
        none acts in none of them. Raises NotPermitted for a role that it does not have."""
        if wanted is None:
            return self.roles[0] if len(self.roles) == 1 else None
        if wanted not in self.roles:
            has = f"has {listed(self.roles, 20)}" if self.roles else "has no role"
            raise NotPermitted(f"{printable(self.name)} cannot act as {printable(wanted)!r}: it {has}")
        return wanted

    def check_may_start(self, start_roles: tuple[str, ...]) -> None:
        """Raise NotPermitted where runs are for some roles only, and this has none of them."""
        if not self.is_one_of(start_roles):
            has = f"has {listed(self.roles, 20)}" if self.roles else "has no role"
            allowed = listed(start_roles, 20)
            raise NotPermitted(f"{printable(self.name)} may not start runs: that is for {allowed}, and it {has}")
