"""W9: what the audit costs: the steps of W2 with its triggers and without them, in turn, on one database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

import psycopg
from psycopg import sql

from bench.crew import Member, crew
from bench.figures import Line, Series, ratios
from bench.server import Server, fetched
from bench.w2 import KINDS, Kind

SIZES = (1_000,)
BOUND = 1.15
TRIGGERS: LiteralString = """
    SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname LIKE 'audited%'
"""


def measure(server: Server, rounds: int, sizes: Sequence[int] = SIZES, others: Sequence[str] = ()) -> list[Line]:  # noqa: ARG001 (each workload is called so)
    """Wall time with ÷ without, pair by pair; which of the two comes first changes from round to round."""
    size = sizes[-1]
    found: dict[tuple[str, bool], list[float]] = {}
    with crew(server, ("surestep",)) as peers:
        peer = peers["surestep"]
        for kind in KINDS:
            _run(peer, kind, 50, "first")
            for round_ in range(rounds):
                for audited in (bool(round_ % 2), not round_ % 2):
                    _switch(peer.url, on=audited)
                    taken = _run(peer, kind, size, f"{round_}-{audited}")
                    found.setdefault((kind.name, audited), []).append(taken)
    return [_line(kind, size, found[kind.name, True], found[kind.name, False]) for kind in KINDS]


def _run(peer: Member, kind: Kind, size: int, name: str) -> float:
    recipe = kind.recipe(size, 0)
    return peer.run(type(recipe)(f"w9-{kind.name}-{name}-{size}", recipe.shape, size, effects=recipe.effects)).wall_s


def _switch(url: str, *, on: bool) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table, trigger in fetched(url, TRIGGERS):
            word = sql.SQL("ENABLE" if on else "DISABLE")
            names = {"table": sql.Identifier("surestep", str(table)), "trigger": sql.Identifier(str(trigger))}
            connection.execute(sql.SQL("ALTER TABLE {table} {word} TRIGGER {trigger}").format(word=word, **names))


def _line(kind: Kind, size: int, audited: list[float], bare: list[float]) -> Line:
    cost = ratios(audited, bare)
    each = Series.of((more - less) / size * 1_000 for more, less in zip(audited, bare, strict=True))
    what = f"{kind.name}, {size:,} steps: with the audit ÷ without"
    return Line("W9", what, f"{cost.told(' ×')}; {each.told(' ms', 3)} per step", cost.median, BOUND, unit=" ×")
