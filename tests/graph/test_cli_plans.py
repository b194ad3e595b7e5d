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
    """Plan, approvals, warnings and estimate; nothing is stored and nothing runs."""
    project.write("p.json", plan(step("s1", "send", args={"to": "a", "text": "b"}, require_approval=True)))
    shown = surestep("plan", "--plan", "p.json", *KIT, "--json").json
    assert set(shown) == {"plan", "approvals", "warnings", "estimate"}
    assert (shown["approvals"], shown["estimate"]["steps"]) == (["s1"], 1.0)
    assert "asks a person at: s1" in surestep("plan", "--plan", "p.json", *KIT).err
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
    """One line per fault, and the verdict last."""
    project.write("bad.json", FAULTY)
    lines = surestep("validate", "bad.json", *KIT).out.splitlines()
    assert lines[-1] == "not valid"
    assert all(line.startswith(("error: ", "warning: ")) for line in lines[:-1])
    project.write(
        "fenced.md", f"Here it is:\n```json\n{yaml.safe_dump(plan(step('a', 'double', args={'number': 1})))}```\n"
    )
    ended = surestep("validate", "fenced.md", *KIT)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "valid (repaired), 1 step")


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
