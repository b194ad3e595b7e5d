"""Which rules some arguments break, said by the rule's name and in plain words, never with the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plans.expressions import InvalidExpression, holds, names_read
from plans.strict_values import number_of
from plans.values import JSON
from tools.named_rules import Amount, Condition, NamedRule, Rule


class _Missing:
    """Stands where nothing is."""


_MISSING = _Missing()
_Found = JSON | _Missing


class Breach(NamedTuple):
    """A broken rule: the argument it is about ("" for a condition), and why, with the rule's name."""

    argument: str
    sentence: str


def breaches(tool: str, rules: Sequence[Rule], args: Mapping[str, JSON]) -> Iterator[Breach]:
    """The rules that these arguments break, in their order. What cannot be judged breaks a rule: a rule is a guard, and
    a guard that stumbles does not let pass."""
    for rule in rules:
        if isinstance(rule, Condition):
            if not _holds(rule, args):
                named = f" (rule {rule.name!r})" if rule.name else ""
                yield Breach("", f"{tool}: {rule.message}{named}")
        elif problem := _problem(rule, args):
            yield Breach(rule.path[0], f"{tool}: {rule.message or f'{rule.arg} {problem}'} (rule {rule.label!r})")


def judgeable(rule: Rule, literal: Mapping[str, JSON]) -> bool:
    """Whether a rule can be judged by those arguments alone that a plan gives as they are. Numbers written as text are
    left for later where only the tool's types can say which they are."""
    if isinstance(rule, Condition):
        try:
            read = names_read(rule.condition)
        except InvalidExpression:
            return False
    else:
        read = frozenset({rule.path[0]} | ({rule.currency_arg.split(".")[0]} if isinstance(rule, Amount) else set()))
    return bool(read) and read <= literal.keys() and not any(_numeral_in(literal[name]) for name in read)


def _holds(rule: Condition, args: Mapping[str, JSON]) -> bool:
    try:
        return holds(rule.condition, dict(args))
    except InvalidExpression:
        return False


def _problem(rule: NamedRule, args: Mapping[str, JSON]) -> str | None:
    found = list(_at(args, rule.path))
    if isinstance(rule, Amount):
        return _money_problem(rule, found, list(_elements(_at(args, tuple(rule.currency_arg.split("."))))))
    for value in _elements(found) if rule.elementwise else found:
        if isinstance(value, _Missing) or value is None:
            if not rule.optional:
                return "is missing"
        elif problem := rule.problem(value):
            return problem
    return None


def _money_problem(rule: Amount, found: Sequence[_Found], currencies: Sequence[_Found]) -> str | None:
    """Each amount with its currency: one for all of them, or one for each."""
    amounts = list(_elements(found))
    if len(currencies) == 1:
        currencies = list(currencies) * len(amounts)
    if len(currencies) != len(amounts):
        return f"must have one currency each, at {rule.currency_arg}"
    for amount, currency in zip(amounts, currencies, strict=True):
        if isinstance(amount, _Missing) or amount is None:
            if not rule.optional:
                return "is missing"
        elif problem := rule.problem_in(amount, None if isinstance(currency, _Missing) else currency):
            return problem
    return None


def _at(value: _Found, path: Sequence[str]) -> Iterator[_Found]:
    """What stands at a place; of a list on the way, what stands there in each element."""
    if not path:
        yield value
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _at(element, path)
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
    else:
        yield _MISSING


def _elements(values: Sequence[_Found] | Iterator[_Found]) -> Iterator[_Found]:
    """The values, lists among them replaced by their elements, however deep."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _elements(value)
        else:
            yield value


def _numeral_in(value: JSON) -> bool:
    if isinstance(value, Mapping):
        return any(_numeral_in(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_numeral_in(item) for item in value)
    return isinstance(value, str) and number_of(value) is not None
