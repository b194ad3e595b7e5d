"""Rules over a tool's arguments as data: a JMESPath condition, or one of a few checks that are hard to write right.

Each named check is about one argument, or a place in it (`order.lines.amount`); where there is a list, every element of
it must pass. A missing value breaks the rule, unless the rule is `optional`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from plans import strict_values as strict
from plans.values import JSON
from plans.wording import either
from tools.declared import Declared

Number = Annotated[Decimal, Field(allow_inf_nan=False)]
Types = frozenset[str]

_TEXT: Types = frozenset({"string"})
_NUMBERS: Types = frozenset({"number", "integer"})


class _Rule(Declared):
    """`name` is what a refusal calls it by, `message` what it says instead of the check's own words."""

    name: str | None = Field(None, pattern=r"^[\w .:-]{1,64}$")
    message: str | None = Field(None, min_length=1, max_length=300)


class Condition(_Rule):
    """A JMESPath condition over the arguments that must hold; what cannot be evaluated does not."""

    check: Literal["condition"] = "condition"
    condition: str = Field(min_length=1)
    message: str = Field(min_length=1, max_length=300)

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or "condition"


class _OfArgument(_Rule):
    """A check of what stands at `arg`. Its `problem` says what is wrong with a value, as the end of a sentence that
    begins with the argument; None if it passes."""

    arg: str = Field(pattern=r"^[^\s.\[\]]+(\.[^\s.\[\]]+)*$", max_length=200)
    optional: bool = False
    suits: ClassVar[Types] = _TEXT
    """The JSON types that it can judge."""
    elementwise: ClassVar[bool] = True
    """Whether it judges the elements of a list one by one, or the list."""

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or f"{self.check} of {self.arg}"  # type: ignore[attr-defined]

    @property
    def path(self) -> tuple[str, ...]:
        """The place that it is about."""
        return tuple(self.arg.split("."))


class EmailDomain(_OfArgument):
    """One plain e-mail address at one of these domains; `subdomains` of them count only if asked for. Neither a display
    name, nor several addresses in one text, nor an address that routes through another host passes."""

    check: Literal["email_domain"] = "email_domain"
    allowed: tuple[str, ...] = Field(min_length=1)
    subdomains: bool = False

    _domains = field_validator("allowed")(strict.host_names)

    def problem(self, value: JSON) -> str | None:
        """Why this is not such an address."""
        domain = strict.domain_of_address(value)
        if domain is not None and strict.under(domain, self.allowed, subdomains=self.subdomains):
            return None
        return f"must be one plain address at {either(self.allowed)}"


class UrlHost(_OfArgument):
    """A URL of one of these hosts ("example.com", or "example.com:8443" for a port of its own), over one of `schemes`,
    without user or password."""

    check: Literal["url_host"] = "url_host"
    allowed: tuple[str, ...] = Field(min_length=1)
    subdomains: bool = False
    schemes: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*$")], ...] = Field(("https",), min_length=1)

    _hosts = field_validator("allowed")(strict.hosts_with_ports)

    def problem(self, value: JSON) -> str | None:
        """Why this is not such a URL."""
        host = strict.host_of_url(value, self.schemes)
        if host is not None and strict.under(host, self.allowed, subdomains=self.subdomains):
            return None
        return f"must be an {either(self.schemes)} URL of {either(self.allowed)}"


class AtMost(_OfArgument):
    """A number that is `value` or less."""

    check: Literal["at_most"] = "at_most"
    value: Number
    suits: ClassVar[Types] = _NUMBERS

    def problem(self, value: JSON) -> str | None:
        """Why this is not such a number."""
        number = strict.number_of(value)
        return None if number is not None and number <= self.value else f"must be a number, {self.value:f} at most"


class AtLeast(_OfArgument):
    """A number that is `value` or more."""

    check: Literal["at_least"] = "at_least"
    value: Number
    suits: ClassVar[Types] = _NUMBERS

    def problem(self, value: JSON) -> str | None:
        """Why this is not such a number."""
        number = strict.number_of(value)
        return None if number is not None and number >= self.value else f"must be a number, {self.value:f} at least"


class Amount(_OfArgument):
    """An amount of money from 0 up to what its currency allows: `at_most={"EUR": 500, "JPY": 80_000}`, the currency
    being the argument at `currency_arg`. A currency that is not named is refused."""

    check: Literal["amount"] = "amount"
    currency_arg: str = Field("currency", pattern=r"^[^\s.\[\]]+(\.[^\s.\[\]]+)*$", max_length=200)
    at_most: dict[Annotated[str, Field(pattern=r"^[A-Z]{3}$")], Annotated[Number, Field(ge=0)]] = Field(min_length=1)
    suits: ClassVar[Types] = _NUMBERS

    def problem_in(self, value: JSON, currency: JSON) -> str | None:
        """Why this is not such an amount in this currency."""
        most = self.at_most.get(currency) if isinstance(currency, str) else None
        if most is None:
            return f"must be in {either(self.at_most)}, as {self.currency_arg} says"
        number = strict.number_of(value)
        return None if number is not None and 0 <= number <= most else f"must be from 0 to {most:f} {currency}"


class LengthAtMost(_OfArgument):
    """A text of at most `value` characters, or a list of at most as many elements."""

    check: Literal["length_at_most"] = "length_at_most"
    value: int = Field(ge=0)
    suits: ClassVar[Types] = frozenset({"string", "array"})
    elementwise: ClassVar[bool] = False

    def problem(self, value: JSON) -> str | None:
        """Why this is longer."""
        if isinstance(value, str):
            return None if len(value) <= self.value else f"must have at most {self.value} characters"
        fits = isinstance(value, list) and len(value) <= self.value
        return None if fits else f"must have at most {self.value} elements"


class OneOf(_OfArgument):
    """One of these values; 1, true and "1" are three."""

    check: Literal["one_of"] = "one_of"
    values: tuple[str | int | float | bool, ...] = Field(min_length=1)
    suits: ClassVar[Types] = frozenset({"string", "number", "integer", "boolean"})

    def problem(self, value: JSON) -> str | None:
        """Why it is none of them."""
        if any(strict.same(value, allowed) for allowed in self.values):
            return None
        return f"must be {either([repr(allowed) for allowed in self.values])}"


class Matches(_OfArgument):
    r"""A text that `pattern` describes as a whole: a regular expression that takes time in proportion to the text (no
    look-around, no back-references). Only ASCII passes unless `ascii` is off, so that \d is a digit from 0 to 9."""

    check: Literal["matches"] = "matches"
    pattern: str = Field(min_length=1, max_length=1_000)
    ascii: bool = True

    _readable = field_validator("pattern")(strict.readable_pattern)

    def problem(self, value: JSON) -> str | None:
        """Why it is none."""
        if isinstance(value, str) and (value.isascii() or not self.ascii) and strict.matches(self.pattern, value):
            return None
        return f"must match {self.pattern}"


class InsidePath(_OfArgument):
    """A path inside of `folder`, by its text alone: no .. in it, and no link is followed to see where it leads. An
    absolute folder takes absolute paths, a relative one ("." is any) relative ones."""

    check: Literal["inside_path"] = "inside_path"
    folder: str = Field(min_length=1)

    _plain = field_validator("folder")(strict.plain_folder)

    def problem(self, value: JSON) -> str | None:
        """Why it is not inside."""
        return None if strict.inside(value, self.folder) else f"must be a path inside of {self.folder}"


def _check_of(declared: Any) -> Any:
    if isinstance(declared, Mapping):
        return declared.get("check", "condition")
    return getattr(declared, "check", None)


NamedRule = EmailDomain | UrlHost | AtMost | AtLeast | Amount | LengthAtMost | OneOf | Matches | InsidePath
Rule = Annotated[
    Annotated[Condition, Tag("condition")]
    | Annotated[EmailDomain, Tag("email_domain")]
    | Annotated[UrlHost, Tag("url_host")]
    | Annotated[AtMost, Tag("at_most")]
    | Annotated[AtLeast, Tag("at_least")]
    | Annotated[Amount, Tag("amount")]
    | Annotated[LengthAtMost, Tag("length_at_most")]
    | Annotated[OneOf, Tag("one_of")]
    | Annotated[Matches, Tag("matches")]
    | Annotated[InsidePath, Tag("inside_path")],
    Discriminator(_check_of, custom_error_type="unknown_check", custom_error_message="no rule has this check"),
]
"""One rule. As data: {"check": "at_most", "arg": "limit", "value": 1000}; without `check` it is a condition."""
CHECKS = (
    "condition", "email_domain", "url_host", "at_most", "at_least", "amount", "length_at_most", "one_of", "matches",
    "inside_path",
)  # fmt: skip
