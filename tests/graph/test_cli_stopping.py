"""A run that is stopped in its middle, politely or not, is gone on with, and nothing that was finished is repeated."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, stopped_by

KIT = ("--toolkit", "mykit:kit")
RUN = ("run", "--plan", "p.json", *KIT, "--thread", "t")
RESUME = "surestep resume t --toolkit mykit:kit"
HALFWAY = plan(
    step("s1", "double", args={"number": 1}),
    step("s2", "send", "s1", args={"to": "ann", "text": "hi"}),
    step("s3", "wait", "s2", args={"seconds": 4}),
    step("s4", "double", "s3", args={"number": 2}),
    answer="all done",
)


def started(project: Project, until: str, *arguments: str) -> subprocess.Popen[bytes]:
    """The run as a child process, in the middle of this call."""
    child = project.start(*(arguments or RUN))
    project.wait_for(until, child)
    return child


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_stop_is_quick_says_how_to_go_on_and_loses_nothing(number: signal.Signals, project: Project) -> None:
    """Exit 5 within two seconds; `resume` finishes; the finished steps ran once, the read that was cut off again."""
    project.write("p.json", HALFWAY)
    child = started(project, "wait 4.0")
    begun = time.monotonic()
    ended = stopped_by(child, number)
    assert time.monotonic() - begun < 2.5
    assert (ended.code, ended.out) == (5, "")
    assert "stopping" in ended.err
    assert RESUME in ended.err
    assert "Traceback" not in ended.err
    assert project.run("show", "t", "--json").json["status"] == "running"
    after = project.run("resume", "t", *KIT, "--json")
    assert (after.code, after.json["status"], after.json["answer"]) == (0, "done", "all done")
    assert project.calls() == ["double 1", "send ann", "wait 4.0", "wait 4.0", "double 2"]


@pytest.mark.slow
def test_a_kill_loses_nothing(project: Project) -> None:
    """After kill -9 the thread can be taken over at once, and the finished steps ran once."""
    project.write("p.json", HALFWAY)
    child = started(project, "wait 4.0")
    time.sleep(0.5)  # finished means accepted, which the letter before is some milliseconds after its dependent starts
    assert stopped_by(child, signal.SIGKILL).code == -signal.SIGKILL
    after = project.run("resume", "t", *KIT, "--json")
    assert (after.code, after.json["status"]) == (0, "done"), after
    assert project.calls() == ["double 1", "send ann", "wait 4.0", "wait 4.0", "double 2"]


def test_a_stop_with_json_prints_the_one_object(project: Project) -> None:
    """Where the run stands, as `show --json` would say it."""
    project.write("p.json", HALFWAY)
    ended = stopped_by(started(project, "wait 4.0", *RUN, "--json"), signal.SIGINT)
    assert (ended.code, [each["status"] for each in ended.json["steps"]]) == (5, ["done", "done", "pending", "pending"])
    assert project.run("show", "t", "--json").json["steps"] == ended.json["steps"]


def test_a_thread_that_never_returns_does_not_hold_up_a_stop(project: Project) -> None:
    """A blocking read is left behind."""
    project.write("p.json", plan(step("s1", "block", args={"seconds": 60})))
    child = started(project, "block 60.0")
    begun = time.monotonic()
    assert stopped_by(child, signal.SIGINT).code == 5
    assert time.monotonic() - begun < 3


SENDING = plan(
    step("s1", "slow_send", args={"to": "ann", "seconds": 3}), step("s2", "double", "s1", args={"number": 1})
)


def test_an_effect_that_has_begun_is_waited_for(project: Project) -> None:
    """The first Ctrl-C says what it waits for; the effect's result is kept and it is not repeated."""
    project.write("p.json", SENDING)
    ended = stopped_by(started(project, "begin ann"), signal.SIGINT)
    assert (ended.code, "s1 (slow_send) has begun and is waited for" in ended.err) == (5, True), ended.err
    assert project.calls() == ["begin ann", "end ann"]
    assert project.run("resume", "t", *KIT).code == 0
    assert project.calls() == ["begin ann", "end ann", "double 1"]


@pytest.mark.slow
def test_a_second_ctrl_c_leaves_at_once_and_corrupts_nothing(project: Project) -> None:
    """The effect was cut off: whether it happened is asked, not guessed, and never repeated unasked."""
    project.write("p.json", plan(step("s1", "slow_send", args={"to": "ann", "seconds": 5})))
    child = started(project, "begin ann")
    child.send_signal(signal.SIGINT)
    time.sleep(0.6)
    begun = time.monotonic()
    ended = stopped_by(child, signal.SIGINT)
    assert time.monotonic() - begun < 1
    assert (ended.code, "left at once" in ended.err, RESUME in ended.err) == (5, True, True)
    paused = project.run("resume", "t", *KIT, "--json")
    assert (paused.code, paused.json["approvals"][0]["kind"]) == (3, "unknown_outcome"), paused
    again = project.run("approve", "t", "s1", *KIT, "--json")
    assert (again.code, project.calls().count("begin ann")) == (0, 2)


@pytest.mark.slow
def test_two_signals_at_once_are_one(project: Project) -> None:
    """A terminal and a program in between may both pass a Ctrl-C on: that is not a second one."""
    project.write("p.json", SENDING)
    child = started(project, "begin ann")
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    ended = stopped_by(child, signal.SIGINT)
    assert (ended.code, "left at once" in ended.err) == (5, False)
    assert project.calls() == ["begin ann", "end ann"]


@pytest.mark.slow
def test_a_stop_before_anything_has_begun_says_only_that(project: Project) -> None:
    """While toolkits are still imported there is no run to go on with."""
    project.write("slowkit.py", "import time\nopen('calls.txt', 'w').write('importing')\ntime.sleep(30)\n")
    project.write("p.json", HALFWAY)
    child = project.start("run", "--plan", "p.json", "--toolkit", "slowkit:kit", "--thread", "t")
    project.wait_for("importing", child)
    ended = stopped_by(child, signal.SIGTERM)
    assert (ended.code, ended.err) == (5, "surestep: stopped\n")
    project.run("show", "t").refuses("no run was ever started")


@pytest.mark.slow
def test_a_program_that_ignores_hangups_keeps_running(project: Project) -> None:
    """Under nohup a closed terminal stops nothing."""
    project.write("p.json", plan(step("s1", "wait", args={"seconds": 1})))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = started(project, "wait 1.0")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert stopped_by(child, signal.SIGHUP).code == 0
