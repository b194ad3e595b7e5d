"""Plans on the command line: written, edited by hand, judged, and run."""

from __future__ import annotations

import pytest
import yaml

from tests.graph.kits import plan, step
from tests.graph.program import ROOT, Project, Run

KIT = ("--toolkit", "mykit:kit")
GOAL = "Find anomalous orders in this file and summarise them"
ORDERS = ("--file", f"orders={ROOT / 'examples/data/orders.csv'}")


def test_a_plan_is_written_edited_and_run(project: Project, surestep: Run) -> None:
    """`plan > plan.yaml`, an edit, `run --plan plan.yaml`: what runs is what was edited, on the same inputs."""
    written = surestep("plan", GOAL, *ORDERS)
    assert (written.code, "in a row" in written.err, "asks a person at: nobody" in written.err) == (0, True, True)
    edited = yaml.safe_load(written.out)
    assert set(edited) <= {"goal", "steps", "answer"}
    edited["steps"] = [each for each in edited["steps"] if each["tool"] == "describe_table"]
    edited.pop("answer")
    project.write("plan.yaml", yaml.safe_dump(edited, allow_unicode=True))
    ended = surestep("run", "--plan", "plan.yaml", *ORDERS, "--json")
    assert (ended.code, ended.json["plan"]["source"]) == (0, "file")
    assert [(each["tool"], each["status"]) for each in ended.json["steps"]] == [("describe_table", "done")]
    surestep("run", "--plan", "plan.yaml").refuses("orders")


def test_a_written_plan_is_valid_as_it_stands(project: Project, surestep: Run) -> None:
    """What `plan` prints, `validate` accepts, and the run of it ends as the goal's own would."""
    project.write("plan.yaml", surestep("plan", GOAL, *ORDERS).out)
    assert surestep("validate", "plan.yaml").code == 0
    again = surestep("plan", "--plan", "plan.yaml", *ORDERS)
    assert yaml.safe_load(again.out) == yaml.safe_load((project.folder / "plan.yaml").read_text())


def test_the_preview_as_json_and_what_it_asks(project: Project, surestep: Run) -> None:
    """Plan, approvals, warnings and estimate; which sub-goals are left for later; nothing is stored, nothing runs."""
    later = {"id": "s2", "action": "plan", "instruction": "Do the rest", "reason": "test"}
    project.write("p.json", plan(step("s1", "send", args={"to": "a", "text": "b"}, require_approval=True), later))
    shown = surestep("plan", "--plan", "p.json", *KIT, "--json").json
    assert set(shown) == {"plan", "approvals", "warnings", "estimate"}
    assert (shown["approvals"], shown["estimate"]["steps"]) == (["s1"], 2.0)
    assert "asks a person at: s1; planned when reached: s2" in surestep("plan", "--plan", "p.json", *KIT).err
    assert surestep("runs", "--json").json == {"runs": []}
    assert project.calls() == []


FAULTY = plan(step("a", "nope", "b"), step("b", "double", "a", args={"number": "x"}))


def test_validate_as_json_has_every_fault_with_its_place(project: Project, surestep: Run) -> None:
    """Exactly the documented keys; a valid plan is given back as it would be stored."""
    project.write("bad.json", FAULTY)
    ended = surestep("validate", "bad.json", *KIT, "--json")
    assert (ended.code, set(ended.json)) == (1, {"valid", "repaired", "faults", "plan"})
    assert (ended.json["valid"], ended.json["plan"]) == (False, None)
    assert all({"code", "step", "path", "message"} <= set(fault) for fault in ended.json["faults"])
    assert {fault["code"] for fault in ended.json["faults"]} >= {"CYCLE", "UNKNOWN_TOOL", "INVALID_ARGS"}
    project.write("good.json", plan(step("a", "double", args={"number": 1})))
    ended = surestep("validate", "good.json", *KIT, "--json")
    assert (ended.code, ended.json["valid"], ended.json["plan"]["steps"][0]["id"]) == (0, True, "a")


def test_validate_for_a_person(project: Project, surestep: Run) -> None:
    """The faults by step, with place and what would be right, in 80 columns; the verdict last."""
    project.write("bad.json", FAULTY)
    lines = surestep("validate", "bad.json", *KIT).out.splitlines()
    assert lines[-1] == "not valid: 3 faults"
    assert [line for line in lines if line and not line.startswith(" ")][:-1] == [
        "step a (steps[0])",
        "step b (steps[1])",
    ]
    assert any(line.startswith("  error: UNKNOWN_TOOL at tool: there is no tool 'nope'") for line in lines)
    assert all(len(line) <= 80 for line in lines)
    project.write(
        "fenced.md", f"Here it is:\n```json\n{yaml.safe_dump(plan(step('a', 'double', args={'number': 1})))}```\n"
    )
    ended = surestep("validate", "fenced.md", *KIT)
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "valid: 1 step (repaired: the text was not the plan as it stands)"


def test_validate_minds_the_limits_of_the_run_to_come(project: Project, surestep: Run) -> None:
    """Limits are given as to `run`, and a plan that breaks one is not valid."""
    project.write("p.json", plan(step("a", "double", args={"number": 1}), step("b", "double", args={"number": 2})))
    found = surestep("validate", "p.json", *KIT, "--limit", "max_steps=1", "--json")
    assert (found.code, [fault["code"] for fault in found.json["faults"] if fault["severity"] == "error"]) == (
        1,
        ["TOO_MANY_STEPS"],
    )
    surestep("validate", "p.json", *KIT, "--limit", "max_step=1").refuses("did you mean max_steps?")


def test_validate_judges_whatever_a_file_holds(project: Project, surestep: Run) -> None:
    """What can be read and is no plan is a verdict, not an error, in both forms, by file and by standard input."""
    project.write("odd", '{"goal": "g"}'.encode("utf-16"))
    ended = surestep("validate", "odd", *KIT, "--json")
    assert (ended.code, ended.json["valid"], ended.json["plan"]) == (1, False, None)
    assert "it looks like UTF-16; save it as UTF-8" in ended.json["faults"][0]["message"]
    said = project.run("validate", "-", *KIT, stdin=b"x" * 100_000_000)
    assert (said.code, said.out.splitlines()[-1]) == (1, "not valid: 1 fault")
    assert "PLAN_SYNTAX: the file has more than 8,000,004 bytes" in said.out


def test_validate_refuses_what_cannot_be_read(project: Project, surestep: Run) -> None:
    """A folder, and a name that no file can have: exit 2 and a sentence."""
    surestep("validate", str(project.folder)).refuses("is a folder; name a file")
    surestep("validate", "x" * 5_000).refuses("cannot be read")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_validate_minds_why_a_model_stopped(reason: str, project: Project, surestep: Run) -> None:
    """A cut answer is no plan, however complete it looks."""
    project.write("good.json", plan(step("a", "double", args={"number": 1})))
    ended = surestep("validate", "good.json", *KIT, "--finish-reason", reason, "--json")
    assert (ended.code, ended.json["valid"]) == (1, False)


def test_validate_reads_standard_input(project: Project) -> None:
    """`validate -`, as a model's answer is piped."""
    ended = project.run("validate", "-", *KIT, "--json", stdin=b'{"goal": "g", "steps": [')
    assert (ended.code, ended.json["valid"]) == (1, False)
