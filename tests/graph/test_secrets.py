"""Secrets that tools put into their errors: nothing of them is stored, streamed or shown, wherever one looks."""

from __future__ import annotations

import psycopg
from psycopg import sql

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = '''
from plans.failure import ToolFailure
from tools.registry import Toolkit

kit = Toolkit("leaky")
# Turned round, so that the secret stands in no line of source that a traceback shows.
SECRET = "9x7terces4ym"[::-1]
ONCE = {"max_attempts": 1}


@kit.tool(effect="read", retry=ONCE)
def connect(order: str) -> str:
    """Raises an exception with a password in it."""
    try:
        raise ValueError(f"postgresql://app:{SECRET}@db/shop does not answer")
    except ValueError as error:
        raise RuntimeError(f"order {order}: api_key={SECRET}") from error


@kit.tool(effect="read", retry=ONCE)
def say(order: str) -> str:
    """Says its own sentence, with a token in it."""
    raise ToolFailure("NOT_FOUND", f"order {order} is not at https://shop/orders?token={SECRET}, says Bearer {SECRET}")


@kit.tool(effect="read", retry=ONCE, error_when={"when": "error", "message_from": "error"})
def answer(order: str) -> dict[str, str]:
    """Answers with an error body."""
    return {"error": f"order {order} needs Authorization: Bearer {SECRET}", "sent": f"password: {SECRET}"}


@kit.tool(effect="irreversible", risk="low")
def send(order: str) -> str:
    """Fails with an effect in doubt."""
    raise TimeoutError(f"order {order}: the secret={SECRET} timed out")
'''
SECRET = "my4secret7x9"
STEPS = ("connect", "say", "answer", "send")
PLAN = plan(*(step(f"s{number}", tool, args={"order": "A7"}) for number, tool in enumerate(STEPS)))


def stored(url: str) -> dict[str, str]:
    """Every row of every table of ours and LangGraph's, as text; bytes as hex."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'surestep')"
        ).fetchall()
        return {
            table: "\n".join(
                row
                for (row,) in connection.execute(
                    sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table))
                )
            )
            for schema, table in tables
        }


RAW = {
    "s0": ["Traceback", "RuntimeError: order A7: api_key=***", "postgresql://***@db/shop", "leaky.py"],
    "s1": ["order A7 is not at https://shop/orders?token=***, says Bearer ***"],
    "s2": ["order A7 needs Authorization: Bearer ***", '"sent": "password: ***'],
    "s3": ["TimeoutError: order A7: the secret=*** timed out"],
}


def test_no_secret_of_an_error_is_stored_streamed_or_shown(project: Project, surestep: Run, database_url: str) -> None:
    """Four steps fail, each in its way. Journal, checkpoints and artifacts, in rows and in files, events, results and
    listings hold the errors and not the secret in them; `show --raw` prints what was raised without it."""
    project.write("leaky.py", KIT)
    project.write("p.json", PLAN)
    ended = surestep("run", "--plan", "p.json", "--toolkit", "leaky:kit", "--approve", "all", "--thread", "t", "--json")
    failures = [each["failure"]["code"] for each in ended.json["steps"]]
    assert failures == ["TOOL_ERROR", "NOT_FOUND", "TOOL_ERROR", "UNKNOWN_OUTCOME"]
    looks = [("show", "t"), ("show", "t", "--json"), ("runs", "--json"), ("approvals", "--json")]
    raw = {unit: surestep("show", "t", "--raw", unit) for unit in RAW}
    shown = [ended, *(surestep(*look) for look in looks), *raw.values()]
    assert [each for each in shown if SECRET in each.out + each.err] == []
    assert [(unit, word) for unit, words in RAW.items() for word in words if word not in raw[unit].out] == []

    rows = stored(database_url)
    assert any("is not at https://shop/orders" in text for text in rows.values())
    assert [table for table, text in rows.items() if SECRET in text or SECRET.encode().hex() in text] == []
    files = [path for path in project.folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []

    surestep("show", "t", "--raw", "s9").refuses("step 's9' has no raw error text; steps that have: s0, s1, s2, s3")
    surestep("show", "t", "--raw", "s0", "--output", "s0").refuses("give one of them")


def test_a_run_without_failures_has_no_raw_text(project: Project, surestep: Run) -> None:
    """Where nothing failed, `show --raw` says so."""
    project.write("good.json", plan(step("s0", "double", args={"number": 1})))
    assert surestep("run", "--plan", "good.json", "--toolkit", "mykit:kit", "--thread", "u").code == 0
    surestep("show", "u", "--raw", "s0").refuses("step 's0' has no raw error text; no step of this run has one")
