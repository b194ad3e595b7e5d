"""Sub-goals as parts of a plan: how their own plans join it, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.expressions import names_read
from plans.faults import Fault, errors_among
from plans.limits import Limits
from plans.lint import build_plan, lint
from plans.plan import PlanDraft, StepDraft, referenced_steps
from plans.references import references_in
from plans.renaming import renamed_condition, renamed_step
from plans.subgoals import is_planned, joined, members, prefix_of
from plans.values import JSON, Path
from tests.plans.sample import Tool


class Open(Tool):
    """A tool that takes any arguments."""

    def check_args(self, args: Mapping[str, JSON], references: Sequence[Path] = ()) -> list[tuple[str, str]]:
        """Nothing is wrong with them."""
        return []


TOOLS = {"look": Open("look")}


def look(step_id: str, *after: str, **more: Any) -> dict[str, Any]:
    """A step that reads."""
    return {"id": step_id, "tool": "look", "depends_on": list(after), **more}


def part(step_id: str, instruction: str = "find the rest", **more: Any) -> dict[str, Any]:
    """A step that is a sub-goal."""
    return {"id": step_id, "action": "plan", "instruction": instruction, **more}


def drafted(*steps: dict[str, Any], **more: Any) -> PlanDraft:
    """A draft of these steps."""
    return PlanDraft.model_validate({"goal": "a test", "steps": list(steps), **more})


def faults_of(draft: PlanDraft, **more: Any) -> list[tuple[str, str | None, str]]:
    """The errors of a draft: code, step, and the field."""
    found = errors_among(lint(draft, TOOLS, **more))
    return [(fault.code, fault.step, fault.path.rpartition(".")[2]) for fault in found]


def whole(draft: PlanDraft, step_id: str, own: PlanDraft, *, strict: bool = True) -> PlanDraft:
    """The draft with the sub-goal's plan in it."""
    found, faults = joined(draft, step_id, own, strict=strict)
    assert found is not None, faults
    return found.draft


def refusals(draft: PlanDraft, own: PlanDraft, *, strict: bool = True) -> list[Fault]:
    """What keeps a plan out of the sub-goal `s2`."""
    found, faults = joined(draft, "s2", own, strict=strict)
    assert found is None
    return faults


OUTER = drafted(look("s1"), part("s2", "find ${s1.x}"), look("s3", args={"x": "${s2}"}), answer="it is ${s3.x}")


def test_the_steps_of_a_sub_goal_join_the_plan_under_its_id_and_the_others_stay_byte_for_byte() -> None:
    """They stand before it, their references and conditions are changed with their ids, and it depends on them all."""
    own = drafted(
        look("a", args={"x": "${s1.x} of $${a}"}),
        look("b", "a", args={"x": ["${a.y}", {"z": "to ${a}"}]}, when="a.x > `1` && c.a == 'a'"),
        look("c", for_each="${a.items}", args={"x": "${item.a}"}),
        answer="${b}",
    )
    made = whole(OUTER, "s2", own)
    assert [step.id for step in made.steps] == ["s1", "s2__a", "s2__b", "s2__c", "s2", "s3"]
    assert [step for step in made.steps if "__" not in step.id and step.id != "s2"] == [OUTER.steps[0], OUTER.steps[2]]
    _, first, second, third, sub_goal, _ = made.steps
    assert first.args == {"x": "${s1.x} of $${a}"}
    assert second.args == {"x": ["${s2__a.y}", {"z": "to ${s2__a}"}]}
    assert second.when == "s2__a.x > `1` && s2__c.a == 'a'"
    assert (third.for_each, third.args) == ("${s2__a.items}", {"x": "${item.a}"})
    assert (sub_goal.args, sub_goal.depends_on) == ({"result": "${s2__b}"}, ("s2__a", "s2__b", "s2__c"))
    assert (is_planned(sub_goal), members(sub_goal)) == (True, ("s2__a", "s2__b", "s2__c"))
    assert not faults_of(made)
    plan = build_plan(made, TOOLS, plan_id="p", revision=2, source="model")
    assert plan.draft.steps[4].depends_on == ("s2__a", "s2__b", "s2__c", "s1")
    assert members(plan.step("s2")) == members(sub_goal)


@pytest.mark.parametrize(
    ("steps", "answer", "gives"),
    [
        ([look("a"), look("b", "a")], None, "${s2__b}"),
        ([look("a"), look("b"), look("c", "a")], None, {"b": "${s2__b}", "c": "${s2__c}"}),
        ([look("a")], "it is ${a.x}", "it is ${s2__a.x}"),
        ([look("s2__a")], "${s2__a}", "${s2__a}"),
    ],
)
def test_a_sub_goal_gives_its_answer_else_its_last_steps(steps: list[dict[str, Any]], answer: Any, gives: Any) -> None:
    """One last step's result as it is, several by their ids; ids that begin as they should stay."""
    made = whole(OUTER, "s2", drafted(*steps, answer=answer))
    assert made.steps[-2].args == {"result": gives}


def test_a_name_that_exists_outside_too_is_a_fault_of_a_model_and_none_of_a_template() -> None:
    """What is read could be either; a template's own names are its own. A name that nobody reads is simply new."""
    own = drafted(look("s1"), look("b", "s1"))
    [fault] = refusals(OUTER, own)
    assert (fault.code, fault.step, fault.fix) == ("DUPLICATE_STEP_ID", "s1", "call the new step s2__s1")
    assert whole(OUTER, "s2", own, strict=False).steps[2].depends_on == ("s2__s1",)
    assert whole(OUTER, "s2", drafted(look("s1"))).steps[1].id == "s2__s1"


def test_an_id_that_grows_too_long_is_a_fault() -> None:
    """Ids keep to their bound however deep they stand; what is left for a name is said."""
    [fault] = refusals(OUTER, drafted(look("x" * 61)))
    assert (fault.code, fault.fix) == ("SCHEMA_INVALID", "an id of at most 60 characters")
    assert whole(OUTER, "s2", drafted(look("x" * 60))).steps[1].id == f"s2__{'x' * 60}"


def test_who_reads_a_field_of_a_text_is_told_before_anything_runs() -> None:
    """A text has no fields; one reference may have any."""
    outer = drafted(part("s2"), look("s3", args={"x": "${s2.total}"}))
    [fault] = refusals(outer, drafted(look("a"), answer="it is ${a.total}"))
    assert (fault.code, fault.step) == ("UNKNOWN_REFERENCE", "s2")
    assert "${s2.total}" in fault.message
    assert whole(outer, "s2", drafted(look("a"), answer="${a}")).steps[1].args == {"result": "${s2__a}"}


def test_planned_again_its_steps_have_other_ids_while_those_of_before_are_there() -> None:
    """Steps of an earlier plan that have finished are kept by their ids."""
    made = whole(OUTER, "s2", drafted(look("a")))
    assert prefix_of("s2", made.steps) == "s2_2__"
    again = drafted(*(step.model_dump() for step in made.steps if step.id != "s2"), part("s2"))
    assert [step.id for step in whole(again, "s2", drafted(look("a"))).steps][-2:] == ["s2_2__a", "s2"]


def test_what_cannot_be_a_sub_goal_is_said_at_once() -> None:
    """No list, no arguments of its own, and not the goal or what is around it once more, in whatever case."""
    assert faults_of(OUTER) == []
    assert faults_of(drafted(look("s1"), part("s2", for_each="${s1.x}"))) == [("SCHEMA_INVALID", "s2", "for_each")]
    assert faults_of(drafted(part("s2", args={"x": 1}))) == [("INVALID_ARGS", "s2", "args")]
    assert faults_of(drafted(part("s2", "A  Test"))) == [("NO_PROGRESS", "s2", "instruction")]
    nested = whole(OUTER, "s2", drafted(part("a", "Find ${s1.x}")))
    assert faults_of(nested) == [("NO_PROGRESS", "s2__a", "instruction")]


def test_sub_goals_are_nested_only_so_deep() -> None:
    """The limit counts levels; at 0 there is none."""
    assert faults_of(OUTER, limits=Limits(max_subgoal_depth=0)) == [("LIMIT_INFEASIBLE", "s2", "action")]
    nested = whole(OUTER, "s2", drafted(part("a", "one")))
    deeper = whole(nested, "s2__a", drafted(part("b", "two")))
    assert faults_of(deeper, limits=Limits(max_subgoal_depth=3)) == []
    assert faults_of(deeper, limits=Limits(max_subgoal_depth=2)) == [("LIMIT_INFEASIBLE", "s2__a__b", "action")]


def test_a_step_that_waits_for_what_waits_for_its_sub_goal_is_a_cycle() -> None:
    """The sub-goal depends on all of its steps, so that this shows in the edges."""
    made = whole(OUTER, "s2", drafted(look("a", args={"x": "${s3.x}"})))
    assert "CYCLE" in {code for code, _, _ in faults_of(made)}


def test_the_steps_of_all_plans_count_together() -> None:
    """The limit of steps is one for the whole."""
    made = whole(OUTER, "s2", drafted(look("a"), look("b")))
    assert faults_of(made, limits=Limits(max_steps=5)) == []
    assert faults_of(made, limits=Limits(max_steps=4))[0][0] == "TOO_MANY_STEPS"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s1.total > `5`", "p__s1.total > `5`"),
        ('"s-1".x', '"p__s-1".x'),
        ('"s1".x', "p__s1.x"),
        ("length(s1) == s2.s1", "length(p__s1) == s2.s1"),
        ("x[?s1 == 's1'] | s1", "x[?s1 == 's1'] | s1"),
        ("{s1: s1}.s1", "{s1: p__s1}.s1"),
        ("sort_by(s1, &s1)[0]", "sort_by(p__s1, &s1)[0]"),
        ("@.s1", "@.p__s1"),
        ("s1 ==", "s1 =="),
    ],
)
def test_in_a_condition_only_names_at_its_root_are_changed(before: str, after: str) -> None:
    """Fields that are called so stay, and so does what is no JMESPath."""
    assert renamed_condition(before, {"s1": "p__s1", "s-1": "p__s-1"}) == after


_NAMES = st.sampled_from(["a", "b", "item", "inputs", "s-1"])
_PATHS = st.sampled_from(["", ".a", "[0].b", "[?a == 'b']", '."a"'])
_TEXTS = st.lists(
    st.one_of(st.builds("${{{}{}}}".format, _NAMES, _PATHS), st.sampled_from(["a", "$${a}", "$", "b ", "{a}"])),
    max_size=5,
).map(" ".join)
_QUOTED = _NAMES.map('"{}"'.format)
_CONDITIONS = st.builds("{}.{} == {} || length({}) > `1`".format, _QUOTED, _QUOTED, _QUOTED, _QUOTED)


@given(_TEXTS, _CONDITIONS)
def test_a_renamed_step_reads_the_renamed_steps_and_nothing_else(text: str, condition: str) -> None:
    """Whatever it says: its names are the old ones mapped, its paths and its literal text are the same."""
    names = {"a": "p__a", "s-1": "p__s-1"}
    step = StepDraft(id="a", tool="look", args={"x": [text], "y": {"a": text}}, when=condition)
    new = renamed_step(step, names)
    assert [(each.name, each.path) for each in references_in(new.args)] == [
        (names.get(each.name, each.name), each.path) for each in references_in(step.args)
    ]
    assert names_read(new.when or "") == {names.get(name, name) for name in names_read(condition)}
    assert set(referenced_steps(new)) == {names.get(name, name) for name in referenced_steps(step)}
    back = renamed_step(new, {new: old for old, new in names.items()})
    assert (back.id, back.args) == (step.id, step.args)
    assert (back.when or "").replace('"', "") == condition.replace('"', "")


def test_a_sub_goal_s_id_leaves_room_for_those_of_its_steps() -> None:
    """Else its plan could have no step, whatever its author calls it; once it is planned there is nothing to say."""
    longest = "x" * 57
    assert faults_of(drafted(part(longest, "Find out"))) == []
    assert faults_of(drafted(part(f"{longest}x", "Find out"))) == [("SCHEMA_INVALID", f"{longest}x", "id")]
