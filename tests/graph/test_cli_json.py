"""What a program reads of the command line: one JSON object on stdout, with exactly the keys that stay stable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

RESULT = {"run_id", "thread_id", "status", "answer", "plan", "steps", "approvals", "usage", "tainted"}
PLAN = {"plan_id", "revision", "source"}
STEP = {"id", "tool", "status", "attempts", "output_ref", "failure", "degraded", "mock", "tainted_by"}
APPROVAL = {
    "approval_id", "run_id", "thread_id", "step_id", "tool", "args", "args_sha256", "risk", "reason", "kind", "attempt",
    "created_at", "expires_at", "sources", "approvers", "needed", "rule", "escalates_at", "escalates_to",
    "not_by",
}  # fmt: skip
USAGE = {
    "steps", "attempts", "cached", "local_replans", "global_replans", "model_calls", "model_requests",
    "prompt_tokens", "completion_tokens", "estimated_tokens", "cost", "wall_s",
}  # fmt: skip
FAILURE = {"code", "message", "step_id", "tool", "attempt", "delay_s", "raw_ref"}

GOOD = plan(step("s1", "double", args={"number": 4}), answer="twice is ${s1.number}")
ASKING = plan(step("s1", "send", args={"to": "ann", "text": "hi"}, require_approval=True))
BAD = plan(step("s1", "broken", args={"why": "there is no ball"}))


def test_run_json_prints_exactly_the_documented_object(project: Project, surestep: Run) -> None:
    """A finished run: the key sets at each level, and nothing else on stdout."""
    project.write("p.json", GOOD)
    ended = surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t", "--json")
    result = ended.json
    assert (ended.code, ended.err) == (0, "")
    assert (set(result), set(result["plan"]), set(result["usage"])) == (RESULT, PLAN, USAGE)
    assert [set(each) for each in result["steps"]] == [STEP]
    assert (result["thread_id"], result["status"], result["answer"]) == ("t", "done", "twice is 8")
    assert (result["plan"]["revision"], result["plan"]["source"]) == (1, "file")
    assert (result["steps"][0]["attempts"], result["steps"][0]["failure"]) == (1, None)
    assert (result["approvals"], result["usage"]["steps"]) == ([], 1)


def test_a_paused_run_lists_what_waits_and_ends_with_3(project: Project, surestep: Run) -> None:
    """The approvals carry what binds them; `show --json` of the thread is the same object."""
    project.write("p.json", ASKING)
    ended = surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t", "--json")
    assert (ended.code, ended.json["status"]) == (3, "paused")
    (approval,) = ended.json["approvals"]
    assert (set(approval), approval["args"]) == (APPROVAL, {"to": "ann", "text": "hi"})
    assert surestep("show", "t", "--json").json == ended.json
    assert project.calls() == []


def test_a_failed_run_carries_the_failure_and_ends_with_1(project: Project, surestep: Run) -> None:
    """The failure's code and plain sentence stand at its step."""
    project.write("p.json", BAD)
    ended = surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--json")
    failure = ended.json["steps"][0]["failure"]
    assert (ended.code, ended.json["status"]) == (1, "failed")
    assert set(failure) >= FAILURE
    assert (failure["code"], failure["message"]) == ("NOT_FOUND", "there is no ball")


def test_a_limited_run_ends_with_4(project: Project, surestep: Run) -> None:
    """A limit is its own status and exit code, and a higher one lets the run go on."""
    each = step("s1", "double", args={"number": "${item}"}, for_each="${inputs.numbers}")
    project.write("p.json", plan(each))
    run = ("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t", "--input", "numbers=[1,2,3]", "--json")
    ended = surestep(*run, "--limit", "max_for_each=2")
    assert (ended.code, ended.json["status"]) == (4, "limited")
    after = surestep("resume", "t", "--toolkit", "mykit:kit", "--limit", "max_for_each=9", "--json")
    assert (after.code, after.json["status"], after.json["steps"][0]["attempts"]) == (0, "done", 3)


def test_a_limited_run_says_what_is_finished_and_the_very_command_that_goes_on(project: Project, surestep: Run) -> None:
    """Its last line can be pasted: with it the run ends well. A step that was refused is not counted as a call."""
    each = step("s2", "double", "s1", args={"number": "${item}"}, for_each="${inputs.numbers}")
    project.write("p.json", plan(step("s1", "double", args={"number": 1}), each))
    kit = ("--toolkit", "mykit:kit")
    ended = surestep(
        "run", "--plan", "p.json", *kit, "--thread", "t", "--limit", "max_total_attempts=2", "--input", "numbers=[3,4]"
    )
    assert ended.code == 4
    told = " ".join(ended.out.split())
    assert "the run has made 2 attempts; its limit is 2. Finished: s1. Still to be done: s2." in told
    assert "limited · 1 of 2 steps · 2 calls · " in told
    [_, command] = told.rsplit("go on with a higher limit: surestep ", 1)
    assert command == "resume t --limit max_total_attempts=4 --toolkit mykit:kit"
    assert surestep(*command.split()).code == 0
    assert "done · 2 steps · 3 calls" in surestep("show", "t").out


def test_what_tools_print_never_gets_into_the_json(project: Project, surestep: Run) -> None:
    """A tool that prints, and a program that it starts, write to stderr."""
    project.write("p.json", plan(step("s1", "loud", args={"text": "x"})))
    ended = surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--json")
    assert ended.json["status"] == "done"
    assert "printed x" in ended.err
    assert "started x" in ended.err


def test_an_error_is_one_object_too(project: Project, surestep: Run) -> None:
    """With --json a refusal is {"error": {type, message}} on stdout, the sentence on stderr, and the exit code."""
    ended = surestep("show", "nowhere", "--json")
    assert ended.code == 2
    assert set(ended.json) == {"error"}
    assert (set(ended.json["error"]), ended.json["error"]["type"]) == ({"type", "message"}, "UnknownThread")
    assert ended.err == f"surestep: {ended.json['error']['message']}\n"


def test_a_refused_plan_carries_its_faults(project: Project, surestep: Run) -> None:
    """Every fault at once, each with code, step, path and message."""
    project.write("p.json", plan(step("a", "nope", "b"), step("b", "double", "a", args={"number": "x"})))
    ended = surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--json")
    faults = ended.json["error"]["faults"]
    assert (ended.code, ended.json["error"]["type"]) == (2, "PlanRejected")
    assert {fault["code"] for fault in faults} >= {"UNKNOWN_TOOL", "INVALID_ARGS", "CYCLE"}
    assert all({"code", "step", "path", "message"} <= set(fault) for fault in faults)


@pytest.mark.parametrize(
    "wrong", [["run", "--nope"], ["frob"], ["runs", "--limit", "0"], ["run", "--approve", "x", "g"]]
)
def test_a_wrong_option_is_one_object_too(wrong: list[str], surestep: Run) -> None:
    """What the parser refuses is told in the same shape, with where the right form stands."""
    ended = surestep(*wrong, "--json")
    assert (ended.code, ended.json["error"]["type"]) == (2, "UsageError")
    assert "--help" in ended.err
    assert ended.err.count("\n") == 1


def test_a_word_after_two_dashes_is_no_option(surestep: Run) -> None:
    """A goal that says --json does not ask for it."""
    surestep("run", "--", "--json").refuses("SURESTEP_MODEL")


def test_json_is_ascii_where_the_output_is(project: Project) -> None:
    """On a Latin-1 or ASCII stdout every character is escaped, so that nothing is lost."""
    project.write("p.json", plan(step("s1", "loud", args={"text": "x"}), answer="fünf 订单 ✓"))
    run = ("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--json")
    ended = project.run(*run, environment={"PYTHONIOENCODING": "ascii"})
    assert ended.out.isascii()
    assert json.loads(ended.out)["answer"] == "fünf 订单 ✓"


FAR = """
import os
from tools.registry import Toolkit

kit = Toolkit("far")


@kit.tool(effect="read", isolation="process")
def elsewhere(text: str) -> dict[str, int]:
    \"\"\"Prints, and says where it runs.\"\"\"
    print(f"printed {text}", flush=True)
    os.system(f"echo started {text}")
    return {"pid": os.getpid(), "parent": os.getppid()}
"""


def test_a_tool_in_a_process_of_its_own_works_from_the_users_folder(project: Project) -> None:
    """The child finds the user's module where the command found it, prints to stderr, and is gone with the command."""
    project.write("far.py", FAR)
    project.write("p.json", plan(step("s1", "elsewhere", args={"text": "x"}), answer="${s1.pid} ${s1.parent}"))
    ended = project.run("run", "--plan", "p.json", "--toolkit", "far:kit", "--json")
    pid, parent = map(int, ended.json["answer"].split())
    assert ended.code == 0
    assert pid != parent
    assert "printed x" in ended.err
    assert "started x" in ended.err
    assert not Path(f"/proc/{pid}/cmdline").exists() or b"tools.child" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_run_that_has_ended_is_not_gone_on_with_and_says_so(project: Project, surestep: Run) -> None:
    """`resume` shows how it had ended, makes no call, and names the command for a new one; stdout is the object."""
    project.write("p.json", GOOD)
    surestep("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t")
    calls = project.calls()
    ended = surestep("resume", "t", "--toolkit", "mykit:kit", "--json")
    assert (ended.code, ended.json["status"], project.calls()) == (0, "done", calls)
    assert "had ended before (done); nothing was done. A new one: surestep run GOAL" in ended.err
