"""`surestep audit` at the command line: what it shows of a thread, and what it finds where the record was changed."""

from __future__ import annotations

import json
from typing import LiteralString

import psycopg
import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = ("--toolkit", "mykit:kit")
PLAN = plan(
    step("s1", "double", args={"number": 4}),
    step(
        "s2",
        "send",
        args={"to": "bob@example.org", "text": "${s1.number} apples"},
        depends_on=["s1"],
        require_approval=True,
    ),
)
KEY = "a key that stands in no database at all"


@pytest.fixture
def ran(project: Project, surestep: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on thread `t` that ann has let send a message, and its seal."""
    monkeypatch.setenv("SURESTEP_AUDIT_KEY", KEY)
    monkeypatch.setenv("SURESTEP_USER", "ann")
    project.write("p.json", PLAN)
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t").code == 3
    assert surestep("approve", "t", "s2", *KIT).code == 0
    return surestep


def test_a_thread_is_told_from_plan_to_end_and_without_its_contents(ran: Run) -> None:
    """Plan, validation, calls, the decision and by whom, in their order; neither arguments nor results."""
    told = ran("audit", "t", "--json").json["events"]
    kinds = [event["kind"] for event in told]
    wanted = ["run.running", "journal.draft", "journal.plan", "journal.outcome", "approval.pending", "journal.asked",
              "approval.approved", "decision.added", "journal.decision", "journal.intent", "journal.outcome",
              "journal.finish", "run.done"]  # fmt: skip
    places = iter(kinds)
    assert all(kind in places for kind in wanted), kinds
    [decided] = [event for event in told if event["kind"] == "journal.decision"]
    assert (decided["by"], decided["step"]) == ("ann", "s2")
    assert "approve" in decided["told"]
    assert next(event["by"] for event in told if event["kind"].startswith("run.")) == "ann"
    assert ran("audit", told[0]["chain"], "--json").json["events"] == told
    for text in (json.dumps(told), ran("audit", "t").out):
        assert "ann" in text
        assert "send" in text
        for content in ("bob@example.org", "apples"):
            assert content not in text


def test_a_record_is_whole_until_somebody_changes_it_or_cuts_it_off(ran: Run, project: Project) -> None:
    """Sealed with the key by every command; an approval that is made another's ends with 1, and so does a record that
    lacks what a kept seal covers. What it cannot see it says."""
    verified = ran("audit", "verify")
    assert verified.code == 0
    assert verified.out.startswith("all as written (")
    assert "--anchor" in verified.err
    assert "SURESTEP_AUDIT_KEY" not in verified.err
    (project.folder / "seals.jsonl").write_text(ran("audit", "seal").out, "utf-8")
    assert ran("audit", "verify", "--anchor", "seals.jsonl").err == ""
    tamper(project, "UPDATE surestep.decisions SET decided_by = 'eve'")
    changed = ran("audit", "verify")
    assert changed.code == 1
    assert "source_changed: decision 1 of" in changed.out
    report = ran("audit", "verify", "--thread", "t", "--json")
    assert (report.code, report.json["ok"]) == (1, False)
    assert [finding["code"] for finding in report.json["findings"]] == ["source_changed"]
    tamper(project, "TRUNCATE surestep.audit, surestep.audit_seals, surestep.audit_sealed, surestep.audit_chains,"
           " surestep.runs CASCADE")  # fmt: skip
    assert ran("audit", "verify").code == 0
    cut = ran("audit", "verify", "--anchor", "seals.jsonl")
    assert (cut.code, "anchor_missing" in cut.out) == (1, True)
    (project.folder / "seals.jsonl").write_text('{"seal": "x"}\n', "utf-8")
    wrong = ran("audit", "verify", "--anchor", "seals.jsonl")
    assert (wrong.code, "line 1 of the kept seals" in wrong.err) == (2, True)


def tamper(project: Project, statement: LiteralString) -> None:
    """Past all triggers."""
    with psycopg.connect(project.environment["SURESTEP_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)


def test_entries_are_exported_line_by_line_and_settings_are_among_them(ran: Run, project: Project) -> None:
    """A thread's, or all of them with the seals; whatever they hold, no content of the run. Without a thread it is told
    who has switched which tool."""
    assert ran("audit", "t", "--export", "t.jsonl").out.endswith(" lines written to t.jsonl\n")
    text = (project.folder / "t.jsonl").read_text("utf-8")
    entries = [json.loads(line)["entry"] for line in text.splitlines()]
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert "bob" not in text
    assert ran("tools", "disable", "send", *KIT).code == 0
    *used, changed = ran("audit", "--json").json["events"]
    assert (changed["kind"], changed["told"], bool(changed["by"])) == ("setting.added", "send", True)
    assert {event["kind"] for event in used} == {"settings.used"}
    assert {event["details"]["audit_key"] for event in used} == {"set"}
    everything = [json.loads(line) for line in ran("audit", "--export", "-").out.splitlines()]
    assert {next(iter(each)) for each in everything} == {"entry", "seal"}
    assert "settings" in {each["entry"]["chain"] for each in everything if "entry" in each}
    ran("audit", "t", "--export", "t.jsonl").refuses("t.jsonl exists already", "name another file")
    assert ran("audit", "t", "--export", "no/such/folder").code == 2


REFUSED = (
    (("t", "--thread", "u"), "two threads"),
    (("t", "--anchor", "x"), "audit verify"),
    (("seal", "--export", "x"), "no other option"),
    (("verify", "--export", "x"), "one after the other"),
    (("nobody",), "no run was ever started on thread 'nobody'"),
    (("seal",), "nothing to seal"),
)


def test_what_makes_no_sense_is_refused_in_words(surestep: Run) -> None:
    """Usage errors end with 2 and say what to do."""
    for words, said in REFUSED:
        refused = surestep("audit", *words)
        assert (refused.code, said in refused.err) == (2, True), refused.err


def test_the_archive_takes_no_run_that_was_tampered_with(ran: Run, project: Project) -> None:
    """In the archive its rows could not be compared any more: the run is left, with the command that shows why."""
    tamper(project, "UPDATE surestep.decisions SET decided_by = 'eve'")
    archived = ran("archive", "--older-than", "0s")
    assert archived.code == 1
    assert "not as it was audited (decision 1 of" in archived.err
    assert "surestep audit verify --thread t" in archived.err
    assert ran("audit", "verify").code == 1
    tamper(project, "UPDATE surestep.decisions SET decided_by = 'ann'")
    assert ran("archive", "--older-than", "0s").code == 0
    assert "archived run" in ran("audit", "verify").err
