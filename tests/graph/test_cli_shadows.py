"""Candidates at the command line: counted beside live calls, promoted when they have agreed, taken back again."""

from __future__ import annotations

import json
import time
from typing import Any

import psycopg
import pytest

from tests.graph.kits import plan, step
from tests.graph.program import PATIENCE_S, Project, Run

KIT = ("--toolkit", "shadowed:kit")
SHADOWED = '''
import asyncio
from pathlib import Path
from tools.registry import Toolkit

kit = Toolkit("shadowed")
HERE = Path(__file__).parent
ONCE = {"max_attempts": 1}


@kit.tool(effect="read", retry=ONCE, fallbacks=["spare"])
def price(item: str) -> dict[str, str]:
    """What an item costs."""
    return {"item": item, "by": "old"}


@kit.tool(effect="read", retry=ONCE, shadow_of="price", shadow_compare="item")
def quote(item: str) -> dict[str, str]:
    """What an item costs, asked elsewhere."""
    return {"item": item if item != "odd" else "even", "by": "new"}


@kit.tool(effect="read", retry=ONCE)
def spare(item: str) -> dict[str, str]:
    """What an item has cost once."""
    return {"item": item, "by": "spare"}


@kit.tool(effect="read", retry=ONCE, timeout_s=20, critical=True)
async def nap(seconds: float) -> float:
    """Takes so long."""
    await asyncio.sleep(seconds)
    return seconds


@kit.tool(effect="read", timeout_s=100)
async def hold(name: str) -> str:
    """Waits for somebody to say go on."""
    with (HERE / "calls.txt").open("a") as file:
        file.write(f"hold {name}\\n")
    while not (HERE / name).exists():
        await asyncio.sleep(0.02)
    return name
'''
ASK = plan(step("s", "price", args={"item": "${item}"}, for_each="${inputs.items}"))


@pytest.fixture
def shop(project: Project, surestep: Run) -> Run:
    """The command in a project whose tool `price` has the candidate `quote`."""
    project.write("shadowed.py", SHADOWED)
    project.write("ask.json", ASK)
    return surestep


def ask(shop: Run, *items: str) -> Any:
    """Ask for the price of each, in a run of their own; the shadows have been counted when this returns."""
    ended = shop("run", "--plan", "ask.json", *KIT, "--input", f"items={json.dumps(items)}", "--json")
    assert ended.code == 0, ended
    return ended.json


def shown(shop: Run, name: str) -> Any:
    return shop("tools", *KIT, "show", name, "--json").json["now"]


def compared(shop: Run) -> Any:
    """The candidate's counts after a few live calls. Who ends a run waits for no shadow: the last may be cut off."""
    while not (found := shown(shop, "quote")["shadow"])["agreed"]:
        ask(shop, "a", "b", "c")
    return found


def agreed(database_url: str, times: int) -> None:
    """Say that the candidate has agreed so often in a row by now."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO surestep.shadow_counts (tool, candidate, edition, agreed, differed, failed, in_a_row) "
            "VALUES ('price', 'quote', %(edition)s, %(times)s, 0, 0, %(times)s) "
            "ON CONFLICT (tool, candidate, edition) DO UPDATE SET in_a_row = excluded.in_a_row",
            {"edition": '["1", "1", "item"]', "times": times},
        )


def test_a_candidate_is_counted_shown_promoted_and_taken_back(shop: Run, database_url: str) -> None:
    """Refused with its counts before it has agreed often enough; then it answers, and says so; then no longer."""
    assert shown(shop, "quote")["state"] == "shadow of price: not compared yet"
    assert shown(shop, "price")["candidate"] == "quote"
    counts = compared(shop)
    assert counts["agreed"] == counts["in_a_row"]
    assert (counts["of"], counts["answers"], counts["differed"]) == ("price", False, 0)
    refused = shop("tools", *KIT, "promote", "quote", "--after", "50").refuses("50 are needed", code=1)
    assert f"{counts['agreed']} agreed, 0 differed and 0 failed" in refused
    assert shown(shop, "price")["answered_by"] is None
    agreed(database_url, 100)
    said = shop("tools", "promote", "quote", *KIT, "--by", "ann")
    assert (said.code, said.out) == (0, 'price: answered_by as declared → "quote"\n')
    assert shop("tools", *KIT, "--json", "promote", "quote").json["changes"] == {}
    row = next(line for line in shop("tools", *KIT).out.splitlines() if line.startswith("price "))
    assert "answered by quote" in row
    ended = shop("run", "--plan", "ask.json", *KIT, "--input", 'items=["a"]', "--thread", "t")
    assert "s[0] price: done" in ended.err
    assert "answered by quote" in ended.err
    assert '"by":"new"' in shop("show", "t", "--output", "s[0]").out
    assert shop("show", "t", "--json").json["steps"][0]["tool"] == "price"
    assert shown(shop, "quote")["shadow"]["answers"] is True
    shop("tools", "demote", "quote", *KIT, "--by", "bob")
    assert '"by":"old"' in shop("show", ask(shop, "a")["thread_id"], "--output", "s[0]").out
    shop("tools", *KIT, "promote", "quote").refuses("times in a row", code=1)
    told = [(each["by"], each["changes"]) for each in shop("tools", "history", "price", "--json").json["changes"]]
    assert told == [("bob", {"answered_by": {"before": "quote"}}), ("ann", {"answered_by": {"after": "quote"}})]


def test_where_a_candidate_differs_is_shown_without_what_it_says(shop: Run) -> None:
    """The hash of the arguments and the places, the newest first."""
    while not (found := shown(shop, "quote").get("differences")):
        ask(shop, "odd")
    assert found[0]["places"] == ["result: another value"]
    assert len(found[0]["args_sha256"]) == 64
    assert "even" not in str(found)
    assert shown(shop, "quote")["shadow"]["in_a_row"] == 0


def test_what_is_no_candidate_cannot_be_promoted(shop: Run) -> None:
    """Exit 2 with what would be one, or with what there is not."""
    for words, said in (
        (["promote", "price"], "its candidate is quote"),
        (["promote", "nap"], "declared as the shadow of no other tool"),
        (["promote", "qoute"], "did you mean quote?"),
        (["demote", "price"], "its candidate is quote"),
        (["set", "price", "answered_by=quote"], "no setting 'answered_by'"),
    ):
        shop("tools", *words, *KIT).refuses(said)
    shop("tools", "disable", "quote", *KIT)
    shop("tools", "promote", "quote", *KIT).refuses("quote is switched off")


def test_a_shadow_can_be_called_by_no_plan_and_is_not_offered(shop: Run, project: Project) -> None:
    """`validate` says whose shadow it is; a run does not call it either."""
    project.write("direct.json", plan(step("s", "quote", args={"item": "a"})))
    found = shop("validate", "direct.json", *KIT, "--json").json
    assert [fault["code"] for fault in found["faults"]] == ["TOOL_UNAVAILABLE"]
    assert "it is the shadow of price" in found["faults"][0]["message"]
    assert shop("run", "--plan", "direct.json", *KIT).code == 2


def test_a_promotion_of_a_candidate_that_is_gone_is_ignored_and_told(
    shop: Run, project: Project, database_url: str
) -> None:
    """The tool answers itself; `tools` and `doctor` say why."""
    compared(shop)
    agreed(database_url, 100)
    assert shop("tools", "promote", "quote", *KIT).code == 0
    project.write("later.py", SHADOWED.replace("def quote", "def quota"))
    later = ("--toolkit", "later:kit")
    ended = shop("run", "--plan", "ask.json", *later, "--input", 'items=["a"]', "--thread", "t")
    assert (ended.code, "answered by" in ended.err) == (0, False)
    said = "promotion of quote is ignored: it is not its candidate here"
    assert shop("tools", *later, "show", "price", "--json").json["now"]["state"].startswith(said)
    assert f"price: {said}" in shop("doctor", *later).out


def test_a_worker_in_the_middle_of_a_run_follows_within_two_seconds(
    shop: Run, project: Project, database_url: str
) -> None:
    """A tool that is switched off goes to its fallback, a timeout that is changed counts, and back again; a candidate
    that is promoted answers."""
    steps = [
        step("h1", "hold", args={"name": "one"}),
        step("off", "price", "h1", args={"item": "a"}),
        step("short", "nap", "h1", args={"seconds": 5}),
        step("h2", "hold", "off", "short", args={"name": "two"}, on_dependency_failure="degrade"),
        step("on", "price", "h2", args={"item": "a"}),
        step("long", "nap", "h2", args={"seconds": 0.3}),
    ]
    project.write("long.json", plan(*steps))
    child = project.start("run", "--plan", "long.json", *KIT, "--json", "--thread", "t")
    try:
        project.wait_for("hold one", child)
        assert shop("tools", "disable", "price", *KIT).code == 0
        assert shop("tools", "set", "nap", "timeout_s=0.1", *KIT).code == 0
        time.sleep(2.0)
        project.write("one", "")
        project.wait_for("hold two", child)
        assert shop("tools", "enable", "price", *KIT).code == 0
        assert shop("tools", "reset", "nap", *KIT).code == 0
        agreed(database_url, 100)
        assert shop("tools", "promote", "quote", *KIT).code == 0
        time.sleep(2.0)
        project.write("two", "")
        out, err = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    by_id = {each["id"]: each for each in json.loads(out)["steps"]}
    assert "switched off" in by_id["off"]["degraded"], err
    assert by_id["short"]["failure"]["code"] == "TIMEOUT"
    assert "0.1 s" in by_id["short"]["failure"]["message"]
    assert (by_id["on"]["status"], by_id["on"]["degraded"]) == ("done", None)
    assert by_id["long"]["status"] == "done"
    results = {unit: shop("show", "t", "--output", unit).json["by"] for unit in ("off", "on")}
    assert results == {"off": "spare", "on": "new"}
