"""The linter's checks of shape, tools and arguments, and the plan that a faultless draft becomes."""

from __future__ import annotations

import json
import time
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.faults import MOST, Fault, FaultCode, errors_among
from plans.limits import Limits
from plans.lint import build_plan, lint, lint_reading
from plans.plan import PlanDraft
from plans.reader import read_plan
from plans.schedule import in_order
from tests.plans.sample import DRAFT, PLAN, TOOLS, Tool, of_steps, plan, with_step


def faults(*steps: dict[str, Any], **fields: Any) -> list[Fault]:
    """The errors of a draft of these steps."""
    return errors_among(lint(of_steps(*steps, **fields), TOOLS, inputs=("orders",)))


def codes(*steps: dict[str, Any], **fields: Any) -> list[str]:
    """Their codes."""
    return [fault.code for fault in faults(*steps, **fields)]


def only(*steps: dict[str, Any], **fields: Any) -> Fault:
    """The single error of a draft."""
    (found,) = faults(*steps, **fields)
    return found


def test_a_good_plan_has_no_errors() -> None:
    """What is right is not refused."""
    assert errors_among(lint(DRAFT, TOOLS)) == []


def test_everything_wrong_comes_at_once() -> None:
    """An unknown tool, a doubled id, wrong arguments, a missing dependency and reference: each is named in one go."""
    found = codes(
        {"id": "s1", "tool": "nope"},
        {"id": "s1"},
        {"id": "s3", "args": {"order_id": 3, "extra": "${s8}"}, "depends_on": ["s9"]},
        {"id": "s4", "tool": "list_orders", "args": {"status": "x", "limit": 2**70}},
    )
    assert set(found) == {
        "UNKNOWN_TOOL",
        "DUPLICATE_STEP_ID",
        "INVALID_ARGS",
        "UNKNOWN_DEPENDENCY",
        "UNKNOWN_REFERENCE",
    }
    assert found.count("INVALID_ARGS") == 3


def test_a_draft_without_steps_is_empty() -> None:
    """No steps, no plan."""
    assert codes() == ["PLAN_EMPTY"]


@pytest.mark.parametrize("goal", ["", " \n", "x" * 20_001, "a\x00b", "a\ud800"])
def test_a_goal_that_is_none_is_a_fault(goal: str) -> None:
    """A plan for nothing, for a book, or for what cannot be stored is refused."""
    found = only({"id": "s1"}, goal=goal)
    assert (found.code, found.path) == ("SCHEMA_INVALID", "goal")


def test_more_steps_than_the_limit_are_one_fault() -> None:
    """The limit counts steps, says both numbers, and can be raised."""
    steps = [{"id": f"s{n}"} for n in range(51)]
    found = only(*steps)
    assert (found.code, found.path) == ("TOO_MANY_STEPS", "steps")
    assert "51" in found.message
    assert "50" in found.message
    assert errors_among(lint(of_steps(*steps), TOOLS, limits=Limits(max_steps=51))) == []
    assert codes(*steps[:50]) == []


def test_a_doubled_id_is_named_at_its_second_place() -> None:
    """The fault stands at the later step and says where the first is; no cycle is made up from the two."""
    found = only({"id": "a"}, {"id": "b", "depends_on": ["a"]}, {"id": "a", "depends_on": ["b"]})
    assert (found.code, found.path, found.step) == ("DUPLICATE_STEP_ID", "steps[2].id", "a")
    assert "steps[0]" in found.message


@pytest.mark.parametrize("name", ["inputs", "item"])
def test_a_step_cannot_have_a_name_that_references_use(name: str) -> None:
    """`${inputs...}` and `${item}` always mean what they mean."""
    assert only({"id": name}).path == "steps[0].id"


def test_an_unknown_tool_comes_with_the_nearest_one() -> None:
    """A slip is answered by the name that was meant, a guess by the names there are."""
    assert only({"id": "s1", "tool": "get_ordr"}).fix == "did you mean 'get_order'?"
    assert only({"id": "s1", "tool": "Get-Order"}).fix == "did you mean 'get_order'?"
    stranger = only({"id": "s1", "tool": "zzz"})
    assert (stranger.code, stranger.path, stranger.step) == ("UNKNOWN_TOOL", "steps[0].tool", "s1")
    assert "get_order" in str(stranger.fix)
    assert errors_among(lint(of_steps({"id": "s1"}), {}))[0].fix == "the tools are none"


def test_a_tool_that_is_switched_off_is_unavailable() -> None:
    """A tool that exists and may not be called now has a code of its own."""
    assert only({"id": "s1", "tool": "retired", "args": {}}).code == "TOOL_UNAVAILABLE"


def test_a_tool_that_is_not_set_up_says_what_to_set() -> None:
    """What a person has to configure is the fault's answer, whether or not the tool is switched on too."""
    tools = {"unset": Tool("unset", to_configure="set X to a host")}
    found = errors_among(lint(of_steps({"id": "s1", "tool": "unset", "args": {}}), tools))
    assert [(fault.code, fault.fix) for fault in found] == [("TOOL_UNAVAILABLE", "set X to a host")]


def test_a_tool_that_the_role_may_not_use_is_not_permitted() -> None:
    """Permission is asked of whoever knows the role."""
    found = errors_among(lint(DRAFT, TOOLS, role_permits=lambda tool: tool.effect == "read"))
    assert [(fault.code, fault.step) for fault in found] == [("NOT_PERMITTED", "s2")]


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({}, ["order_id"]),
        ({"order_id": 3}, ["order_id"]),
        ({"order_id": "A1", "x": 1}, ["x"]),
        ({"order_id": "a\x00"}, ["order_id"]),
        ({"order_id": "a\ud800"}, ["order_id"]),
        ({"order_id": float("nan")}, ["order_id"]),
        ({"order_id": "A1", "x": float("inf"), "y": 2**64}, ["x", "y"]),
        ({"order_id": 3, "x": [{"y": "\x00"}]}, ["order_id", "x", "x[0].y"]),
    ],
)
def test_arguments_are_checked_by_the_tool_and_for_what_can_be_stored(args: dict[str, Any], names: list[str]) -> None:
    """Every wrong argument is named with its place; what cannot be stored is not wrong for a second reason."""
    found = faults({"id": "s1", "args": args})
    assert {fault.code for fault in found} == {"INVALID_ARGS"}
    assert sorted(fault.path for fault in found) == [f"steps[0].args.{name}" for name in names]


def test_what_a_reference_fills_is_not_judged_before_it_is_known() -> None:
    """A reference may become any type; its place is handed to the tool as open."""
    assert codes({"id": "s0"}, {"id": "s1", "args": {"order_id": "${s0.id}"}}) == []
    assert codes({"id": "s1", "args": {"order_id": "$${s0.id} costs $5"}}) == []


def test_the_tool_sees_the_text_that_escapes_stand_for() -> None:
    """`$${` is handed to the tool's check as the `${` that it will get."""
    seen: list[Any] = []

    class Spy(Tool):
        def check_args(self, args: Any, references: Any = ()) -> list[tuple[str, str]]:
            seen.append((dict(args), list(references)))
            return []

    args = {"a": "$${x}", "b": ["$${y}", "${s1.id}"], "c": {"d": "${s1}"}}
    lint(of_steps({"id": "s1"}, {"id": "s2", "tool": "spy", "args": args}), {**TOOLS, "spy": Spy("spy")})
    assert seen == [({"a": "${x}", "b": ["${y}", "${s1.id}"], "c": {"d": "${s1}"}}, [("b", 1), ("c", "d")])]


def test_arguments_nested_too_deeply_are_refused_without_being_followed() -> None:
    """A draft built in Python can be deeper than any reader allows."""
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    draft = DRAFT.model_copy(update={"steps": (DRAFT.steps[0].model_copy(update={"args": {"order_id": deep}}),)})
    assert [fault.code for fault in errors_among(lint(draft, TOOLS))] == ["INVALID_ARGS"]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("s11", "did you mean 's1'?"),
        ("zzzzz", "the steps are s1, s2"),
        ("get_order", "get_order is a tool; the step that calls it is s1"),
        ("list_orders", "list_orders is a tool and no other step calls it; leave it out"),
        ("send_reply", "send_reply is a tool and no other step calls it; leave it out"),
        ("inputs", "leave it out: inputs is always there"),
    ],
)
def test_an_unknown_dependency_comes_with_what_was_meant(name: str, fix: str) -> None:
    """A dependency on a tool, on an input or on a misspelt step is answered by what to write instead."""
    args = {"order_id": "A1", "body": "b"}
    found = only({"id": "s1"}, {"id": "s2", "tool": "send_reply", "args": args, "depends_on": [name]})
    assert (found.code, found.path, found.step) == ("UNKNOWN_DEPENDENCY", "steps[1].depends_on[0]", "s2")
    assert found.fix == fix


def test_a_cycle_is_shown_as_its_path() -> None:
    """The steps of a cycle are named in the order in which they wait."""
    found = only({"id": "a", "depends_on": ["c"]}, {"id": "b", "depends_on": ["a"]}, {"id": "c", "depends_on": ["b"]})
    assert found.code == "CYCLE"
    assert "a → c → b → a" in found.message


def test_a_step_that_waits_for_itself_is_a_cycle() -> None:
    """By name, by reference or by condition; and each such step is named."""
    assert codes({"id": "s1", "depends_on": ["s1"]}) == ["CYCLE"]
    assert codes({"id": "s1", "args": {"order_id": "${s1.id}"}}) == ["CYCLE"]
    assert codes({"id": "s1", "when": "s1.status == 'x'"}) == ["CYCLE"]
    assert codes(*({"id": f"s{n}", "depends_on": [f"s{n}"]} for n in range(40))) == ["CYCLE"] * 40


def test_separate_cycles_are_all_reported() -> None:
    """One cycle does not hide another, nor a step that waits for itself."""
    pairs = [({"id": f"a{n}", "depends_on": [f"b{n}"]}, {"id": f"b{n}", "depends_on": [f"a{n}"]}) for n in range(3)]
    assert codes(*(step for pair in pairs for step in pair), {"id": "z", "depends_on": ["z"]}) == ["CYCLE"] * 4


def test_a_cycle_through_references_is_found() -> None:
    """Edges that nobody wrote down count like those in depends_on."""
    assert codes({"id": "a", "args": {"order_id": "${b.id}"}}, {"id": "b", "args": {"order_id": "${a.id}"}}) == [
        "CYCLE"
    ]


def test_a_missing_edge_is_no_fault_and_is_added() -> None:
    """What a step reads, it waits for: the stored plan says so in depends_on."""
    steps = of_steps(
        {"id": "a"},
        {"id": "b"},
        {"id": "c", "args": {"order_id": "${a.id}"}, "when": "b.status == 'late'", "requires": "inputs.orders"},
    )
    assert errors_among(lint(steps, TOOLS, inputs=("orders",))) == []
    built = build_plan(steps, TOOLS, plan_id="p", revision=1, source="file")
    assert built.step("c").depends_on == ("a", "b")


def test_a_plan_gets_the_highest_of_the_risks() -> None:
    """A draft may raise a risk above its tool's, never lower it."""
    draft = of_steps(
        {"id": "s1"},
        {"id": "s2", "risk": "medium"},
        {"id": "s3", "tool": "send_reply", "args": {"order_id": "A", "body": "b"}, "risk": "low"},
        {"id": "s4", "action": "llm", "tool": None, "args": {}, "instruction": "judge"},
    )
    built = build_plan(draft, TOOLS, plan_id="p", revision=2, source="model", template="t")
    assert [step.risk for step in built.steps] == ["low", "medium", "high", "low"]
    assert (built.plan_id, built.revision, built.source, built.template) == ("p", 2, "model", "t")


def test_building_a_plan_from_its_own_draft_changes_nothing() -> None:
    """A stored plan that is read, linted and stored again is the same plan."""
    built = build_plan(DRAFT, TOOLS, plan_id="p", revision=1, source="file")
    again = read_plan(built.model_dump_json()).draft
    assert again is not None
    assert errors_among(lint(again, TOOLS)) == []
    assert build_plan(again, TOOLS, plan_id="p", revision=1, source="file") == built


def test_a_result_that_nothing_judges_is_worth_a_warning() -> None:
    """A tool without a result schema, and a model without one, succeed whatever comes back."""
    llm: dict[str, Any] = {"id": "l", "action": "llm", "tool": None, "args": {}, "instruction": "judge ${s2}"}
    listed = {"id": "s2", "tool": "list_orders", "args": {"status": "x", "limit": 1}}
    warned = [fault for fault in lint(of_steps({"id": "s1"}, listed, llm), TOOLS) if fault.code == "NO_CRITERION"]
    assert [(fault.step, fault.severity) for fault in warned] == [("s2", "warning"), ("l", "warning")]
    judged = of_steps({**listed, "success_when": "length(@) > `0`"}, {**llm, "output_schema": {"type": "string"}})
    assert not [fault for fault in lint(judged, TOOLS) if fault.code == "NO_CRITERION"]


def test_a_result_that_nobody_reads_is_worth_a_warning() -> None:
    """A step that only reads, and that neither another step nor the answer uses, is named."""
    reply = {"id": "r", "tool": "send_reply", "args": {"order_id": "A", "body": "b"}}
    unread = lint(of_steps({"id": "s1"}, {"id": "s2"}, reply, answer="It is ${s2.status}."), TOOLS)
    assert [fault.step for fault in unread if fault.code == "UNREAD_OUTPUT"] == ["s1"]
    assert not [fault for fault in lint(of_steps({"id": "s1"}), TOOLS) if fault.code == "UNREAD_OUTPUT"]


def test_the_readable_part_of_a_broken_plan_is_linted_too() -> None:
    """Faults of form and faults of meaning come together, at the places where the steps stand."""
    written = plan(
        steps=[
            {"id": "s1", "tool": "get_order", "arg": {}},
            {"id": "s2", "tool": "nope", "depends_on": ["s1"], "args": {"a": "${s1.id}"}},
        ]
    )
    found = errors_among(lint_reading(read_plan(json.dumps(written)), TOOLS))
    assert [(fault.code, fault.path) for fault in found] == [
        ("SCHEMA_INVALID", "steps[0].arg"),
        ("UNKNOWN_TOOL", "steps[1].tool"),
    ]


def test_nothing_is_said_about_names_that_a_broken_step_may_have() -> None:
    """A fault of form does not drag faults of reference behind it."""
    written = plan(
        steps=[{"tool": "get_order", "args": {"order_id": "A1"}}, {**PLAN["steps"][1], "depends_on": ["s1", "s7"]}]
    )
    found = errors_among(lint_reading(read_plan(json.dumps(written)), TOOLS))
    assert [(fault.code, fault.path) for fault in found] == [("SCHEMA_INVALID", "steps[0].id")]


def test_a_step_with_a_key_that_stands_twice_is_not_judged_by_one_of_the_two() -> None:
    """Which tool it calls is not known, so nothing is said about that tool, nor about who refers to the step."""
    text = json.dumps(PLAN).replace('"tool": "get_order"', '"tool": "get_order", "tool": "nope"')
    found = errors_among(lint_reading(read_plan(text), TOOLS))
    assert [(fault.code, fault.path) for fault in found] == [("DUPLICATE_KEY", "steps[0].tool")]


def test_what_reading_said_is_not_said_again() -> None:
    """An argument that cannot be stored is one fault, though reader and linter both see it."""
    reading = read_plan(json.dumps(with_step(0, args={"order_id": "a\x00b"})))
    found = errors_among(lint_reading(reading, TOOLS))
    assert [(fault.code, fault.path) for fault in found] == [("INVALID_ARGS", "steps[0].args.order_id")]
    assert lint_reading(read_plan("prose"), TOOLS) == list(read_plan("prose").faults)
    assert lint_reading(read_plan(json.dumps(PLAN)), TOOLS) == lint(DRAFT, TOOLS)


def test_every_fault_has_a_place_or_concerns_the_plan() -> None:
    """A fault of a step names it, and its path leads into it."""
    for fault in faults({"id": "s1", "tool": "x", "depends_on": ["y"], "when": "(", "args": {"order_id": "${z}"}}):
        assert fault.step == "s1"
        assert fault.path.startswith("steps[0].")
        assert fault.code in get_args(FaultCode)


ids = st.sampled_from(["a", "b", "c", "inputs", "item", "get_order"])
texts = st.sampled_from(
    [
        "A1",
        "${a.id}",
        "${b}",
        "${a",
        "${item.x}",
        "${inputs.orders}",
        "{{a}}",
        "a.id",
        "(",
        "!a.b",
        "@",
        "x\x00",
        "${a.lines[0].sku}",
    ]
)
drafts = st.lists(
    st.fixed_dictionaries(
        {
            "id": ids,
            "tool": st.sampled_from([*TOOLS, "nope"]),
            "args": st.dictionaries(st.sampled_from(["order_id", "body"]), texts),
        },
        optional={
            "depends_on": st.lists(ids, max_size=2),
            "when": texts,
            "requires": texts,
            "success_when": texts,
            "for_each": texts,
            "output_schema": st.sampled_from([{}, {"type": "x"}, {"$ref": "#/a"}, {"properties": {"id": {}}}]),
        },
    ),
    max_size=5,
).map(lambda steps: PlanDraft.model_validate({"goal": "g", "steps": steps, "answer": "${a.id} ${b"}))


@given(drafts)
def test_any_draft_is_linted_without_an_exception(draft: PlanDraft) -> None:
    """Whatever a draft holds, faults come out; a draft without errors makes a plan whose steps have an order."""
    found = errors_among(lint(draft, TOOLS, inputs=("orders",)))
    if not found:
        built = build_plan(draft, TOOLS, plan_id="p", revision=1, source="model")
        assert set(in_order({step.id: step.depends_on for step in built.steps})) == {step.id for step in draft.steps}


def test_a_huge_draft_is_linted_quickly() -> None:
    """Ten thousand steps, good or bad, are judged in seconds; of one kind of fault only the first ones are listed."""
    good = of_steps(*({"id": f"s{n}", "args": {"order_id": f"${{s{n - 1}.id}}" if n else "A"}} for n in range(10_000)))
    bad = of_steps(*({"id": f"s{n}", "tool": f"get_ordr{n}", "depends_on": [f"t{n}"]} for n in range(10_000)))
    started = time.process_time()
    assert codes_of(good) == {"TOO_MANY_STEPS"}
    assert codes_of(bad) == {"TOO_MANY_STEPS", "UNKNOWN_TOOL", "UNKNOWN_DEPENDENCY"}
    assert len(lint(bad, TOOLS)) < 5 * MOST
    assert time.process_time() - started < 15


def codes_of(draft: PlanDraft) -> set[str]:
    """The codes of a draft's errors."""
    return {fault.code for fault in errors_among(lint(draft, TOOLS))}
