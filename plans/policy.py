"""A policy: who may do what with which tool, who is asked, how many of them and for how long. Ordered rules, as data.

The first rule that fits a call decides about it. An effect that no rule fits is denied. What a policy comes to for a
call stands in `plans/policy_rulings.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cached_property, lru_cache
from math import inf
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from plans.errors import VersionTooNew
from plans.plan import Effect, Risk
from plans.policy_conditions import Condition, Declared, Names, several
from plans.provenance import Provenance
from plans.values import JSON, sha256_of

MOST_RULES = 500
"""So many rules, floors and trusted sources may a policy have of each."""
WRITES: tuple[Effect, ...] = ("transactional", "idempotent", "irreversible")
"""What `effects = "write"` stands for."""
NO_TOOLS = ("llm", "plan")
"""What is named in the place of a tool where a model has made a value: no source that can be trusted."""


def _effects(value: Any) -> Any:
    named = several(value)
    if not isinstance(named, tuple) or not all(isinstance(each, str) for each in named):
        return named
    return tuple(dict.fromkeys(each for one in named for each in (WRITES if one == "write" else (one,))))


_Name = Annotated[str, Field(pattern=r"^[\w .,:-]{1,64}$")]
_Glob = Annotated[str, Field(pattern=r"^[A-Za-z0-9_?*-]{1,64}$")]
Globs = Annotated[tuple[_Glob, ...], BeforeValidator(several)]
"""Names with `*` for anything and `?` for one character; upper and lower case are two."""
_Roles = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], BeforeValidator(several)]
_Place = Annotated[str, Field(pattern=r"^[^\s.\[\]]+(\.[^\s.\[\]]+)*$", max_length=200)]
_Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False, strict=False)]


class Terms(Declared):
    """Who is asked, and on which terms. Any `needed` different people with one of the roles `approvers` (none named:
    anybody) allow a call; with `by_another` the yes of the one who has started the run does not count. After
    `expires_s` no answer is a no; after `escalate_after_s`, if nobody has answered, those with a role in `escalate_to`
    may decide too. None: as the policy's `asking` says, else as the settings do."""

    approvers: _Roles = ()
    needed: int | None = Field(None, ge=1, le=20)
    by_another: bool | None = None
    expires_s: _Seconds | None = None
    escalate_after_s: _Seconds | None = None
    escalate_to: _Roles = ()

    @model_validator(mode="after")
    def _escalates_in_time(self) -> Self:
        if (self.escalate_after_s is None) == bool(self.escalate_to):
            raise ValueError("escalate_after_s and escalate_to belong together")
        after, end = self.escalate_after_s, self.expires_s
        if after is not None and end is not None and after >= end:
            raise ValueError(f"escalate_after_s {after:g} is not before expires_s {end:g}")
        return self

    def or_else(self, others: Terms) -> Terms:
        """These terms, with those of the others where these say nothing."""
        mine = {name: getattr(self, name) for name in Terms.model_fields if name in self.model_fields_set}
        said = {name: getattr(others, name) for name in others.model_fields_set} | mine
        if (said.get("escalate_after_s") or 0) >= (said.get("expires_s") or inf):  # the other's is too late for these
            said = {name: value for name, value in said.items() if not name.startswith("escalate")}
        return Terms(**said)


NO_TERMS = Terms()


class Matched(Declared):
    """What a call must be for a rule or a floor to fit it; what is not said fits any. `args` are conditions by the
    argument's place ("amount", "order.lines.price"); `tainted` says whether text of strangers stands in the arguments:
    in any (true), in one of those named, or in none (false)."""

    name: _Name
    tools: Globs = ()
    toolkits: Globs = ()
    effects: Annotated[tuple[Effect, ...], BeforeValidator(_effects)] = ()
    roles: _Roles = ()
    tenants: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], BeforeValidator(several)] = ()
    args: dict[_Place, Condition] = Field(default_factory=dict)
    tainted: bool | Annotated[Names, Field(min_length=1)] | None = None


class Rule(Matched, Terms):
    """A rule: the calls it fits are allowed, asked about on its terms, or denied. `message` is told to who is asked or
    refused."""

    risk: Annotated[tuple[Risk, ...], BeforeValidator(several)] = ()
    then: Literal["allow", "ask", "deny"]
    message: str | None = Field(None, min_length=1, max_length=300)

    @model_validator(mode="after")
    def _asks_on_terms(self) -> Self:
        said = [name for name in Terms.model_fields if name in self.model_fields_set]
        if said and self.then != "ask":
            raise ValueError(f"says {said[0]} and then = {self.then!r}; that is for rules that ask")
        return self

    @property
    def terms(self) -> Terms:
        """Its terms alone."""
        return Terms(**{name: getattr(self, name) for name in Terms.model_fields if name in self.model_fields_set})


class Floor(Matched):
    """The calls it fits have at least this risk, whatever their tool and their plan say."""

    risk: Risk


class Trusted(Declared):
    """A source whose values count as trusted in some arguments: a field of what a tool gives, or of an input. `field`
    is a plain path ("customer.email") and covers what lies below it; without one, all of it. `args` are names of
    arguments; without any, all of them."""

    name: _Name
    from_tool: _Glob | None = None
    from_input: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    field: _Place | None = None
    tools: Globs = ()
    args: Names = ()

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.from_tool is None) == (self.from_input is None):
            raise ValueError("names one source: either from_tool or from_input")
        return self

    def covers(self, value: Provenance, tool: str) -> bool:
        """Whether a value of this provenance is trusted by it in an argument of this tool."""
        name, path = _source(value.source)
        if self.from_tool is not None:
            known = value.tool not in (None, *NO_TOOLS) and name != "inputs" and fits(value.tool, (self.from_tool,))
        else:
            known = value.tool is None and name == "inputs" and path[:1] == (self.from_input,)
            path = path[1:]
        wanted = tuple(self.field.split(".")) if self.field else ()
        return (
            known
            and path[: len(wanted)] == wanted
            and (not self.tools or fits(tool, self.tools))
            and (not self.args or argument_of(value.argument) in self.args)
        )


class Policy(Declared):
    """Rules in their order, risk floors, trusted sources, and the terms of all questions that no rule is about."""

    version: Literal[1] = 1
    asking: Terms = NO_TERMS
    rules: tuple[Rule, ...] = Field((), max_length=MOST_RULES)
    floors: tuple[Floor, ...] = Field((), max_length=MOST_RULES)
    trusted: tuple[Trusted, ...] = Field((), max_length=MOST_RULES)

    @model_validator(mode="before")
    @classmethod
    def _in_order(cls, said: Any) -> Any:
        """Files and journals have lists."""
        if not isinstance(said, Mapping):
            return said
        return {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for kind, named in (("rules", self.rules), ("floors", self.floors), ("trusted", self.trusted)):
            names = [each.name for each in named]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"two {kind} are called {twice[0]!r}; give each a name of its own")
        return self

    @cached_property
    def sha256(self) -> str:
        """Names what it says, however it is written."""
        return sha256_of(self.stored())

    def stored(self) -> dict[str, JSON]:
        """As it is written into a run's journal."""
        return self.model_dump(mode="json", exclude_unset=True)

    def trusts(self, value: Provenance, tool: str) -> str | None:
        """The name of what makes it trust a value in an argument of this tool; None if nothing does."""
        return next((each.name for each in self.trusted if each.covers(value, tool)), None)


def read_policy(stored: Mapping[str, Any]) -> Policy:
    """A policy as it was stored. Raises VersionTooNew for one that this code cannot read."""
    try:
        return Policy.model_validate(stored)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]
        raise VersionTooNew(
            f"the run has a policy that this Surestep cannot read ({'.'.join(map(str, said['loc']))}: {said['msg']}). "
            "Go on with the version that has begun it; nothing was changed"
        ) from None


def trusted_by_all(policies: Sequence[Policy], value: Provenance, tool: str) -> str | None:
    """What makes every policy of a run trust a value in an argument of this tool: the first one's word for it. None if
    one of them does not, or there is none."""
    names = [policy.trusts(value, tool) for policy in policies]
    return names[0] if names and None not in names else None


def argument_of(place: str) -> str:
    """The argument that a place in a call's arguments belongs to: "items" of "items[0].url"."""
    return re.split(r"[.\[]", place, maxsplit=1)[0]


def fits(name: str, globs: Iterable[str]) -> bool:
    """Whether one of these globs describes a name."""
    return any(_pattern(glob).match(name) for glob in globs)


@lru_cache(maxsize=4_096)
def _pattern(glob: str) -> re.Pattern[str]:
    """As `fnmatchcase`, which remembers 256 of them."""
    return re.compile(translate(glob))


def _source(source: str) -> tuple[str, tuple[str, ...]]:
    """The name of a source and the plain path in it. What is no plain path has a part that no field is called."""
    name, *rest = re.split(r"(?=[.\[])", source, maxsplit=1)
    path = rest[0] if rest else ""
    if not re.fullmatch(r"(\.[A-Za-z0-9_-]+|\[\d+\]|\[\*?\])*", path):
        return name, ("\x00",)
    return name, tuple(part for part in re.sub(r"\[[\d*]*\]", "", path).split(".") if part)
