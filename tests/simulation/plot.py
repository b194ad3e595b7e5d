"""What a seed stands for: a plan, how each tool behaves, what people answer, and when processes die."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from tests.simulation.timeline import chance

Turn = Literal["ok", "soft", "hard", "hang", "lost"]
"""How a call ends: well; with a failure that a retry mends; with one that it does not; not in time, and nothing has
happened; not in time, although it has happened."""

KINDS: dict[str, tuple[str, ...]] = {
    "read": ("look", "scan", "tally"),
    "effect": ("note", "book", "send", "wire"),
}
DURATIONS_S = (0.0, 0.001, 0.05, 0.4, 2.0, 7.0)
TIMEOUT_S = 20.0
"""What every tool of the world declares."""


@dataclass(frozen=True)
class Manners:
    """How rough a world is: shares of calls, decisions and answers that go another way."""

    soft: float = 0.0
    hard: float = 0.0
    hang: float = 0.0
    approvals: float = 0.0
    rejected: float = 0.0
    edited: float = 0.0
    bad_plans: float = 0.0
    pure: bool = False


MANNERS: dict[str, Manners] = {
    "calm": Manners(pure=True),
    "pure": Manners(soft=0.25, approvals=0.2, pure=True),
    "doubtful": Manners(soft=0.2, hang=0.25, approvals=0.2),
    "wild": Manners(soft=0.15, hard=0.15, hang=0.1, approvals=0.25, rejected=0.15, edited=0.15, bad_plans=0.3),
}


@dataclass(frozen=True)
class Plot:
    """One seed's story. Times in seconds; `crashes` and `pauses` count callbacks of the process that runs then."""

    seed: int
    manner: str
    plan: dict[str, Any]
    concurrency: int
    latency_s: float
    lost: float
    shuffle: float
    crashes: tuple[int, ...] = ()
    pause: int | None = None
    twins: bool = False

    @property
    def strikes_in_effects(self) -> bool:
        """Whether a process dies, once it has lived long enough, only while an effect of its is on the way."""
        return self.chance("strikes").random() < 0.4

    @property
    def manners(self) -> Manners:
        """How rough the world is."""
        return MANNERS[self.manner]

    def chance(self, *what: object) -> Random:
        """Chance for one thing, whatever else happens before it."""
        return chance(self.seed, *what)

    def turn(self, unit: str, tool: str, number: int) -> tuple[Turn, float]:
        """How this unit's call of this number ends, and how long it takes."""
        draw, manners = self.chance("turn", unit, tool, number), self.manners
        seconds = draw.choice(DURATIONS_S) * draw.choice((0.5, 1.0, 1.7))
        if self.chance("hard", unit, tool).random() < manners.hard:
            return "hard", seconds
        if number == 1 and draw.random() < manners.soft:
            return "soft", seconds
        if number == 1 and draw.random() < manners.hang:
            return draw.choice(("hang", "lost")), TIMEOUT_S * 3
        return "ok", seconds


def plot_of(seed: int) -> Plot:
    """The story of a seed."""
    draw = chance(seed, "plot")
    manner = draw.choice(("calm", "pure", "pure", "doubtful", "doubtful", "wild", "wild", "wild"))
    troubled = draw.random()
    return Plot(
        seed=seed,
        manner=manner,
        plan=_plan(draw, MANNERS[manner]),
        concurrency=draw.choice((1, 2, 3, 8, 8)),
        latency_s=draw.choice((0.0, 0.0, 0.004, 0.2)),
        lost=draw.choice((0.0, 0.0, 0.1)),
        shuffle=draw.choice((0.0, 0.0, 0.3)),
        crashes=tuple(int(draw.paretovariate(0.6) * 8) for _ in range(draw.choice((0, 1, 1, 2, 3)))),
        pause=int(draw.paretovariate(0.6) * 12) if troubled > 0.7 else None,
        twins=troubled < 0.2,
    )


def _plan(draw: Random, manners: Manners) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for place in range(draw.randint(2, 9)):
        before = [step["id"] for step in steps]
        needed = draw.sample(before, draw.randint(0, min(3, len(before))))
        steps.append(_step(draw, manners, f"s{place}", needed, steps))
    return {"goal": "a seed", "steps": steps}


def _step(draw: Random, manners: Manners, name: str, needed: list[str], before: list[dict[str, Any]]) -> dict[str, Any]:
    if needed and draw.random() < 0.12:
        said = " and ".join(f"${{{each}}}" for each in needed)
        return {"id": name, "action": "llm", "instruction": f"Judge {said} for {name}", "reason": "a seed says so"}
    lists = {step["id"] for step in before if step.get("tool") == "tally"}
    plain = {step["id"] for step in before if "tool" not in step}
    given = {
        each: f"${{{each}}}" if each in plain else _reference(draw, each, each in lists or _is_many(before, each))
        for each in needed
    }
    tool = draw.choice(KINDS["read"] if draw.random() < 0.55 else KINDS["effect"])
    step: dict[str, Any] = {"id": name, "tool": tool, "args": {"given": given}, "reason": "a seed says so"}
    source = next((each for each in needed if each in lists), None)
    if source is not None and draw.random() < 0.6:
        step["for_each"] = f"${{{source}}}"
        step["args"] = {"given": {**given, "item": "${item}"}}
        step["tool"] = tool = "look" if tool == "tally" else tool
    if tool in KINDS["effect"]:
        step["args"]["by"] = name if "for_each" not in step else f"{name} ${{item}}"
        if draw.random() < manners.approvals:
            step["require_approval"] = True
    conditional = next((each for each in needed if each not in plain), None)
    if conditional is not None and draw.random() < 0.15:
        is_list = conditional in lists or _is_many(before, conditional)
        step["when"] = (
            f"length({conditional} || `[]`) > `1`" if is_list else f"!starts_with(to_string({conditional}.nonce), '1')"
        )
    if needed and draw.random() < 0.3:
        step["on_dependency_failure"] = draw.choice(("skip", "degrade"))
    return step


def _is_many(before: list[dict[str, Any]], name: str) -> bool:
    return any(step["id"] == name and "for_each" in step for step in before)


def _reference(draw: Random, name: str, is_list: bool) -> str:
    if is_list:
        return draw.choice((f"${{{name}}}", f"first ${{{name}[0]}}"))
    return draw.choice((f"${{{name}}}", f"${{{name}.nonce}}", f"n ${{{name}.nonce}} of ${{{name}.me}}"))
