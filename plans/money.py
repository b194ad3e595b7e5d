"""What counts as an argument about money, and which judgements of models become one. One declared rule, by names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from plans.plan import StepDraft
from plans.references import references_in
from plans.values import JSON

MONEY = frozenset({
    "amount", "balance", "charge", "cost", "credit", "currency", "discount", "fee", "payment", "payout", "price",
    "refund", "sum", "total",
})  # fmt: skip
"""An argument is about money if one of these is a word of its name: `amount`, `refund_total`, `unitPrice`, `fees`."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def about_money(name: str) -> bool:
    """Whether an argument of this name is about money."""
    words = {word.lower() for word in _WORD.findall(name)}
    return not MONEY.isdisjoint(words | {word.removesuffix("s") for word in words})


def money_judgements(steps: Sequence[StepDraft], changes: Callable[[StepDraft], bool]) -> frozenset[str]:
    """The llm steps whose result becomes money in an argument of a step with an effect, straight or by way of other
    steps; of two in a row the later one. `changes` says whether a step has an effect."""
    known = {step.id: step for step in steps}
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [name for step in steps if changes(step) for name in _money_from(step.args, step)]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        if known[name].action == "llm":
            found.add(name)
        else:
            waiting.extend(_read([known[name].args, known[name].for_each], known[name]))
    return frozenset(found)


def _money_from(args: JSON, step: StepDraft) -> Iterator[str]:
    """The steps that arguments about money read, at any depth."""
    if isinstance(args, dict):
        for name, value in args.items():
            yield from _read(value, step) if about_money(name) else _money_from(value, step)
    elif isinstance(args, list | tuple):
        for value in args:
            yield from _money_from(value, step)


def _read(value: JSON, step: StepDraft) -> Iterator[str]:
    """The steps that a value refers to; `item` is what the step goes over."""
    for reference in references_in(value):
        if reference.name == "item" and step.for_each is not None:
            yield from (each.name for each in references_in(step.for_each))
        else:
            yield reference.name
