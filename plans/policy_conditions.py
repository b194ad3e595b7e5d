"""Conditions of a policy over a call's arguments, judged in three ways: it holds, it does not, or nobody can tell.

What cannot be read in one way only, and what is missing, is neither true nor false: a policy that stumbles over it
falls to the stricter side (`plans/policy_rulings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from plans import strict_values as strict
from plans.placeholders import placeholders_in
from plans.values import JSON

Truth = bool | None
"""None: it cannot be told."""


class Absent:
    """Stands where a call gives nothing."""


ABSENT = Absent()


class Declared(BaseModel):
    """A part of a policy: frozen, strict, and without fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def all_of(truths: Iterable[Truth]) -> Truth:
    """Whether all hold: one that does not settles it, else one that cannot be told."""
    found = set(truths)
    return False if False in found else None if None in found else True


def several(value: Any) -> Any:
    """What may be several: one that stands without a list around it is a list of one."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _number(value: Any) -> Decimal:
    number = strict.number_of(value)
    if number is None:
        raise ValueError("must be a number")
    return number


Names = Annotated[tuple[str, ...], BeforeValidator(several)]
"""Several names; one may stand without a list around it."""
_Number = Annotated[Decimal, BeforeValidator(_number)]
_Values = Annotated[tuple[str | bool | int | float, ...], BeforeValidator(several), Field(min_length=1)]


class Condition(Declared):
    """What the value of an argument has to be, every check of it. Numbers may come as digits in a text; addresses, URLs
    (https) and paths must be plain ones. Of a list each element is judged. `or_absent` holds where nothing is given,
    `given` says whether something must or must not be."""

    at_most: _Number | None = None
    at_least: _Number | None = None
    above: _Number | None = None
    below: _Number | None = None
    one_of: _Values | None = None
    email_domain: Annotated[Names, Field(min_length=1)] | None = None
    url_host: Annotated[Names, Field(min_length=1)] | None = None
    subdomains: bool = False
    inside_path: str | None = Field(None, min_length=1)
    matches: str | None = Field(None, min_length=1, max_length=1_000)
    given: bool | None = None
    or_absent: bool = False

    @field_validator("email_domain")
    @classmethod
    def _domains(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return strict.host_names(value) if value is not None else None

    @field_validator("url_host")
    @classmethod
    def _hosts(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return strict.hosts_with_ports(value) if value is not None else None

    @field_validator("matches")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        return strict.readable_pattern(value) if value is not None else None

    @field_validator("inside_path")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        return strict.plain_folder(value) if value is not None else None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        checks = [name for name in CHECKS if getattr(self, name) is not None]
        if not checks and self.given is None:
            raise ValueError(f"says nothing about the argument; it may say {', '.join((*CHECKS, 'given'))}")
        if self.given is False and checks:
            raise ValueError(f"cannot say {checks[0]} of an argument that must not be given")
        if self.given is not None and self.or_absent:
            raise ValueError("says both given and or_absent; one is enough")
        if self.subdomains and self.email_domain is None and self.url_host is None:
            raise ValueError("says subdomains without email_domain or url_host")
        return self

    def truth(self, value: JSON | Absent) -> Truth:
        """Whether one value is as this says. null is what is not given."""
        if value is None or isinstance(value, Absent):
            return True if self.or_absent else None if self.given is None else not self.given
        if self.given is False:
            return False
        if isinstance(value, str) and placeholders_in(value):
            return True if self.given else None  # a secret, which nobody sees here
        said = {name: getattr(self, name) for name in CHECKS}
        return all_of(_CHECK[name](self, asked, value) for name, asked in said.items() if asked is not None)


def _compared(holds: Callable[[Decimal, Decimal], bool]) -> Callable[[Condition, Any, JSON], Truth]:
    def check(_: Condition, bound: Decimal, value: JSON) -> Truth:
        number = strict.number_of(value)
        return None if number is None else holds(number, bound)

    return check


def _one_of(_: Condition, allowed: tuple[str | int | float, ...], value: JSON) -> Truth:
    if isinstance(value, dict):
        return None
    return any(strict.same(value, each) for each in allowed)


def _email_domain(self: Condition, domains: tuple[str, ...], value: JSON) -> Truth:
    domain = strict.domain_of_address(value)
    return None if domain is None else strict.under(domain, domains, subdomains=self.subdomains)


def _url_host(self: Condition, hosts: tuple[str, ...], value: JSON) -> Truth:
    host = strict.host_of_url(value, ("https",))
    return None if host is None else strict.under(host, hosts, subdomains=self.subdomains)


def _inside_path(_: Condition, folder: str, value: JSON) -> Truth:
    """Only of a plain path of the folder's own kind can it be told that it is elsewhere."""
    if strict.inside(value, folder):
        return True
    return False if strict.inside(value, "/" if folder.startswith("/") else ".") else None


def _matches(_: Condition, pattern: str, value: JSON) -> Truth:
    return strict.matches(pattern, value) if isinstance(value, str) else None


_CHECK: Mapping[str, Callable[[Condition, Any, JSON], Truth]] = {
    "at_most": _compared(lambda number, bound: number <= bound),
    "at_least": _compared(lambda number, bound: number >= bound),
    "above": _compared(lambda number, bound: number > bound),
    "below": _compared(lambda number, bound: number < bound),
    "one_of": _one_of,
    "email_domain": _email_domain,
    "url_host": _url_host,
    "inside_path": _inside_path,
    "matches": _matches,
}
CHECKS = tuple(_CHECK)
"""What a condition can check of a value."""


def truth_at(condition: Condition, args: Mapping[str, JSON], path: str) -> Truth:
    """Whether what stands at a place ("order.lines.amount") is as a condition says. Of several values some of which are
    and some of which are not, that cannot be told."""
    truths = {condition.truth(value) for value in values_at(args, path.split("."))}
    return truths.pop() if len(truths) == 1 else None


def values_at(value: JSON | Absent, path: list[str]) -> list[JSON | Absent]:
    """Every value at a place, through lists; where there is none, that."""
    if isinstance(value, list):
        return [found for each in value for found in values_at(each, path)] or [ABSENT]
    if not path:
        return [value]
    name, *rest = path
    return values_at(value[name], rest) if isinstance(value, dict) and name in value else [ABSENT]
