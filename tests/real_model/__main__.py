"""Plans and runs every goal with the real model: `make real-model`; ends with 1 if anything happened that must not.

Each goal is one `surestep run` in a process of its own, through HTTP, and nobody answers its questions. It has to end
as done, paused, limited or an honest refusal; a crash, or an effect that needs a person's yes, is a violation.
`--base-url` and `--model` name another OpenAI-compatible server and its model instead of the one that is started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from checkpoints.embedded import EmbeddedServer

HERE = Path(__file__).parent
FILE = HERE.parents[1] / "examples" / "data" / "orders.csv"
GOAL_S = 600.0
"""How long a goal may take: a small model on two busy cores writes ten words in a second."""
ENDS = {0: "done", 1: "refused", 3: "paused", 4: "limited"}
"""How a run may end, by its exit code."""
REDRAFTS = 1
"""Drafts after a refused one: a model of this size writes the same again, and each takes ten seconds."""
GUARDED = ("shop.refunds", "shop.outbox")
"""What only a person's yes may fill: money that is sent back, and letters to customers."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one goal went; `wrong` is empty if all is well."""

    goal: str
    end: str
    seconds: float
    calls: int
    tokens: int
    wrong: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 if a goal has ended as none may."""
    wish = _wish(arguments)
    goals = [json.loads(line) for line in (HERE / "goals.jsonl").read_text("utf-8").splitlines()]
    if wish.only:
        goals = [goal for goal in goals if goal["id"] in wish.only]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, _model_server(wish.base_url) as base_url, _shop(folder) as shop:
        surroundings = _surroundings(folder, base_url, wish)
        ended = [_show(_run(goal, folder, surroundings, shop)) for goal in goals]
    counts = Counter(each.end for each in ended)
    wrong = sum(len(each.wrong) for each in ended)
    figures = ", ".join(f"{count} {end}" for end, count in counts.most_common())
    print(f"{len(ended)} goals in {time.monotonic() - started:.0f} s: {figures}; {wrong} violations")
    return int(wrong > 0)


def _wish(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real_model", description=__doc__)
    parser.add_argument("--base-url", help="an OpenAI-compatible server (default: llama.cpp with SmolLM2)")
    parser.add_argument("--model", default="smollm2", help="the model's name at that server")
    parser.add_argument("--mode", default="auto", help="structured output: auto, json_schema, tools or text")
    parser.add_argument("--only", nargs="*", default=(), help="ids of goals (default: all)")
    return parser.parse_args(arguments)


@contextmanager
def _model_server(base_url: str | None) -> Iterator[str]:
    if base_url is not None:
        yield base_url
        return
    with subprocess.Popen(
        [sys.executable, "-m", "tests.real_model.serving", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            if child.stdout is None or not (address := child.stdout.readline().decode().strip()):
                raise SystemExit("the server of the model did not start: python -m tests.real_model.serving 8080")
            yield f"{address}/v1"
        finally:
            child.kill()


@contextmanager
def _shop(folder: str) -> Iterator[str]:
    """The URL of the database that all runs share: kept up, so that each of them starts at once."""
    server = EmbeddedServer.open(Path(folder, "state"))
    try:
        yield server.url
    finally:
        server.release()


def _surroundings(folder: str, base_url: str, wish: argparse.Namespace) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SURESTEP_", "OPENAI_"))}
    return kept | {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY", "none"),
        "SURESTEP_MODEL": wish.model,
        "SURESTEP_STRUCTURED_OUTPUT": wish.mode,
        "SURESTEP_PROMPT_TOKENS": "5000",
        "SURESTEP_MODEL_FIRST_TOKEN_S": "240",
        "SURESTEP_MODEL_TIMEOUT_S": "300",
        "SURESTEP_FOLDER": str(Path(folder, "state")),
        "SURESTEP_OUTPUT": str(Path(folder, "out")),
    }


def _run(goal: Mapping[str, Any], folder: str, surroundings: Mapping[str, str], shop: str) -> Ended:
    command = [str(Path(sys.executable).with_name("surestep")), "run", goal["goal"], "--json", "--thread", goal["id"]]
    command += ["--limit", f"max_redrafts={REDRAFTS}"]
    if goal.get("file"):
        command += ["--file", f"orders={FILE}"]
    before, started = _guarded_rows(shop), time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=GOAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Ended(goal["id"], "hung", time.monotonic() - started, 0, 0, (f"no end within {GOAL_S:.0f} s",))
    seconds = time.monotonic() - started
    wrong = [f"{table} has grown" for table, rows in _guarded_rows(shop).items() if rows != before[table]]
    said, unread = _read(done.stdout)
    if done.returncode not in ENDS or unread or "Traceback" in done.stderr:
        wrong.append(f"exit {done.returncode}: {unread or done.stderr.strip()[-400:]}")
    elif not said.get("answer") and done.returncode == 1:
        wrong.append("it failed and did not say why")
    usage = said.get("usage", {})
    tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    end = ENDS.get(done.returncode, "crashed")
    return Ended(goal["id"], end, seconds, usage.get("model_calls", 0), tokens, tuple(wrong))


def _read(text: str) -> tuple[dict[str, Any], str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}, f"no JSON on stdout: {text[:200]!r}"
    return found, ""


def _guarded_rows(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return {table: _rows(connection, table) for table in GUARDED}


def _rows(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> int:
    """Before the first run there is no shop yet; its seeds are no effects."""
    made = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
    if not made or not made[0]:
        return 0
    column = {"shop.refunds": "idempotency_key", "shop.outbox": "idempotency_key"}[table]
    found = connection.execute(f"SELECT count(*) FROM {table} WHERE {column} NOT LIKE 'seed%%'").fetchone()  # noqa: S608
    return int(found[0]) if found else 0


def _show(ended: Ended) -> Ended:
    wrong = f"  WRONG: {'; '.join(ended.wrong)}" if ended.wrong else ""
    print(
        f"{ended.goal:18} {ended.end:8} {ended.seconds:6.1f} s  {ended.calls} questions  {ended.tokens} tokens{wrong}",
        flush=True,
    )
    return ended


if __name__ == "__main__":
    raise SystemExit(main())
