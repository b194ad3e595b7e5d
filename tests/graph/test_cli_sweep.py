"""`surestep sweep`: from cron or for as long as it runs, it says what it has done and ends with the right code."""

from __future__ import annotations

import signal
import subprocess
import time

import psycopg
import pytest
from pytest_httpserver import HTTPServer

from tests.graph.kits import plan, step
from tests.graph.program import PATIENCE_S, Project, Run
from tests.graph.receiver import Receiver

KIT = ("--toolkit", "mykit:kit")
ASKS = plan(step("s1", "send", args={"to": "ann", "text": "hi"}, require_approval=True))


@pytest.fixture
def paused(project: Project, surestep: Run) -> Run:
    """A run on thread `t` that waits for a decision."""
    project.write("p.json", ASKS)
    ended = surestep("run", "--plan", "p.json", *KIT, "--thread", "t")
    assert ended.code == 3
    assert "counts as a no" in ended.out
    return surestep


def happens(project: Project, what: str) -> None:
    """Something happens to the database while no command runs."""
    with psycopg.connect(project.environment["SURESTEP_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(what)


OVERDUE = "UPDATE surestep.approvals SET expires_at = now() - interval '1 s'"


def test_a_sweep_says_what_it_has_done(project: Project, paused: Run) -> None:
    """Nothing at first; after the expiry the no, and how the run ended; once."""
    quiet = paused("sweep", *KIT)
    assert (quiet.code, quiet.out) == (0, "nothing was left waiting\n")
    happens(project, OVERDUE)
    told = paused("doctor", *KIT).out
    assert "t was not answered in time and not resumed: surestep resume t" in told
    swept = paused("sweep", *KIT)
    assert (swept.code, swept.out) == (0, "t: gone on with (expired), now failed\n1 question expired\n")
    assert paused("sweep", *KIT, "--json").json == {
        "expired": 0, "escalated": 0, "delivered": 0, "not_delivered": [], "gone_on": [], "left": [],
    }  # fmt: skip
    assert project.calls() == []


def test_a_sweep_that_could_not_do_all_ends_with_one_and_says_what_is_missing(project: Project, paused: Run) -> None:
    """A run whose tools are not here, and a receiver that is away; `doctor` has both."""
    happens(project, "UPDATE surestep.approvals SET status = 'approved', decision = '{\"type\": \"approve\"}'")
    project.write(
        "surestep.toml",
        'notify_url = "http://localhost:9/x"\nnotify_secret = "0123456789abcdef"\n'
        'http_private_hosts = ["localhost=127.0.0.1"]\n',
    )
    happens(project, "INSERT INTO surestep.outbox (kind, run_id) SELECT 'run_failed', run_id FROM surestep.runs")
    swept = paused("sweep")
    assert swept.code == 1
    assert "left: t needs tools that are not here: send; sweep with --toolkit" in swept.err
    assert "somebody could not be told, and will be tried again: localhost:9 could not be reached" in swept.err
    said = {each["check"]: each for each in paused("doctor", *KIT, "--json").json["findings"]}
    assert said["messages"]["mark"] == "note"
    assert "1 message could not be delivered so far; the last time: localhost:9" in said["messages"]["message"]
    assert paused("sweep", *KIT).out.startswith("t: gone on with (decided), now done")
    assert project.calls() == ["send ann"]


def test_json_and_for_ever_do_not_go_together(paused: Run) -> None:
    """One object is the promise of --json."""
    ended = paused("sweep", "--every", "1", "--json")
    assert (ended.code, ended.json["error"]["type"]) == (2, "UsageError")
    assert "leave --json out" in ended.err


def test_sweeping_until_stopped_finds_what_comes_and_ends_in_order(
    project: Project, paused: Run, httpserver: HTTPServer
) -> None:
    """A process of its own: the silence that comes while it sweeps is acted on and told; SIGTERM ends it with 0."""
    receiver = Receiver(httpserver)
    private = receiver.settings["http_private_hosts"]
    more = {
        "SURESTEP_NOTIFY_URL": receiver.url,
        "SURESTEP_NOTIFY_SECRET": receiver.settings["notify_secret"],
        "SURESTEP_HTTP_PRIVATE_HOSTS": private,
    }
    folder = Project(project.folder, {**project.environment, **more})
    child = folder.start("sweep", "--every", "0.2", *KIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        happens(project, OVERDUE)
        until = time.monotonic() + PATIENCE_S
        while "run.failed" not in receiver.types() and time.monotonic() < until:
            time.sleep(0.05)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    assert (child.returncode, b"Traceback" in err) == (0, False), err
    assert out == b""
    for line in ("t: nobody has answered s1 (send) in time, which is a no", "t: gone on with (expired), now failed"):
        assert err.decode().count(line) == 1, err
    assert {"approval.expired", "run.failed"} <= set(receiver.types())


def test_what_was_not_answered_in_time_is_gone_on_with(
    project: Project, paused: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told to answer it any more, and who does is told what to do instead."""
    monkeypatch.setenv("SURESTEP_APPROVAL_EXPIRES_S", "1")
    project.write("q.json", ASKS)
    assert paused("run", "--plan", "q.json", *KIT, "--thread", "u").code == 3
    time.sleep(1.1)
    shown = paused("show", "u").out
    assert "which counts as a no" in shown
    assert "surestep resume u" in shown
    assert "approve" not in shown.partition("why")[2].partition("\n")[2]
    paused("approve", "u", "s1", *KIT).refuses("was not answered in time", "surestep resume u", "surestep sweep")
