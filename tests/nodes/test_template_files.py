"""Broken template files: every fault is found, all of a folder's at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodes.template_files import faults_of, read_template
from nodes.templates import load_templates
from plans.errors import ConfigurationError


def good() -> dict[str, Any]:
    return {
        "name": "late",
        "title": {"en": "Late order", "zh": "延误的订单"},
        "toolkit": "orders",
        "match": {"en": ["why is (?P<order>A[0-9]+) late"], "zh": ["(?P<order>A[0-9]+)为什么晚了"]},
        "parameters": {"order": {"about": "the order", "schema": {"type": "string"}}},
        "plan": {
            "steps": [{"id": "s1", "tool": "get_order", "args": {"order_id": "<<order>>"}}],
            "answer": "${s1.why}",
        },
        "examples": [
            {"goal": "Why is A1 late?", "parameters": {"order": "A1"}},
            {"goal": "A1为什么晚了", "parameters": {"order": "A1"}},
        ],
        "others": ["why is A1 late, tell the customer"],
    }


def faults_in(template: dict[str, Any]) -> list[str]:
    written, faults = read_template(yaml.safe_dump(template))
    assert (written is None) == bool(faults)
    return faults if written is None else faults_of(written)


def test_the_good_one_is_good() -> None:
    """What the other tests break is whole to begin with."""
    assert faults_in(good()) == []


def change(*path: Any, to: Any) -> dict[str, Any]:
    template: Any = good()
    place = template
    for part in path[:-1]:
        place = place[part]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    result: dict[str, Any] = template
    return result


def simpler(**step: Any) -> dict[str, Any]:
    """The good one with a simplified plan of this step."""
    return good() | {"on_exhausted": {"steps": [{"id": "d1", "tool": "get_order", **step}]}}


def test_a_simplified_plan_may_have_steps_of_the_plan() -> None:
    """As they are there, so that what is finished of them is taken over; others under ids of their own."""
    both = good() | {"on_exhausted": {"steps": [*good()["plan"]["steps"], {"id": "d1", "tool": "note"}]}}
    assert faults_in(both) == []
    assert faults_in(simpler(args={"order_id": "<<order>>"})) == []


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (change("name", to=None), "name: Field required"),
        (change("name", to="Late order"), "name:"),
        (change("extra", to=1), "extra:"),
        (change("match", to={}), "match: needs a pattern"),
        (change("match", "en", to=[]), "match.en"),
        (change("match", "en", to=["why (?P<order>"]), "is no pattern"),
        (change("match", "en", to=["why {unknown} (?P<order>A)"]), "unknown"),
        (change("match", "en", to=["(?:why|why so)+ (?P<order>A)"]), "without end"),
        (change("match", "en", to=["{why} (?P<order>A)"]) | {"words": {"en": {"why": "{why}"}}}, "in circles"),
        (change("match", "en", to=["why late"]), "lacks the groups ['order']"),
        (change("match", "en", to=["why (?P<order>A) (?P<who>B)"]), "has the groups ['who']"),
        (change("parameters", "order", "schema", to={"type": "strong"}), "parameters.order.schema"),
        (change("parameters", "order", "default", to=5), "5 does not fit"),
        (change("parameters", "order", "words", to={"x(": "y"}), "words"),
        (change("parameters", "order", "words", to={"x": 3}), "3 does not fit"),
        (change("parameters", "goal", to={"about": "x", "default": ""}), "is no name"),
        (change("parameters", "spare", to={"about": "x", "default": ""}), "['spare'] are used nowhere"),
        (change("plan", "answer", to="<<who>>"), "has the holes ['who']"),
        (change("plan", "answer", to="$<<order>>"), "beside a dollar"),
        (change("plan", "answer", to="<<order>>{x}"), "beside a dollar, a brace"),
        (change("plan", "answer", to="<<order>><<goal>>"), "or another hole"),
        (change("plan", "answer", to="${s1.rows[?id == '<<order>>']}"), "inside a reference"),
        (change("plan", "steps", to=[{"id": "s1", "tool": "t", "when": "a == '<<order>>'"}]), "plan.steps[0].when"),
        (change("plan", "steps", to=[]), "plan.steps"),
        (change("plan", "steps", to=None), "plan.steps"),
        (change("examples", to=[]), "examples"),
        (simpler(args={"order_id": "<<who>>"}), "on_exhausted: has the holes ['who']"),
        (simpler(args={"order_id": "$<<order>>"}), "on_exhausted: '$<<order>>' has a hole beside a dollar"),
        (simpler(when="a == '<<order>>'"), "on_exhausted.steps[0].when"),
        (simpler(id="s1"), "on_exhausted.steps[0]: step 's1' is another one in plan"),
    ],
)
def test_a_broken_template_says_where_and_what(broken: dict[str, Any], told: str) -> None:
    """Each way to get a template wrong has a sentence with its place."""
    assert any(told in fault for fault in faults_in(broken)), faults_in(broken)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: [", "is not YAML"),
        ("name: a\nname: b\n", "'name' stands twice"),
        ("match:\n  en: [x]\n  en: [y]\n", "'en' stands twice"),
        ("- a\n", "valid dictionary"),
        ("", "valid dictionary"),
        ("!!python/object/apply:os.system [ls]", "is not YAML"),
    ],
)
def test_a_file_that_is_no_template_is_refused(text: str, told: str) -> None:
    """Not YAML, a key that stands twice, and YAML that is something else are told apart."""
    written, faults = read_template(text)
    assert written is None
    assert told in faults[0]


def test_a_folder_tells_all_faults_of_all_files(tmp_path: Path) -> None:
    """One error names every fault of every file, among them what only an example shows."""
    (tmp_path / "a.yaml").write_text("name: [")
    (tmp_path / "late.yaml").write_text(yaml.safe_dump(change("examples", 0, "parameters", to={"order": "A2"})))
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(good()))
    (tmp_path / "notes.txt").write_text("not a template")
    with pytest.raises(ConfigurationError) as refusal:
        load_templates(tmp_path)
    told = str(refusal.value)
    assert "a.yaml: is not YAML" in told
    assert "late.yaml: examples[0]" in told
    assert "gives {'order': 'A1'}, expected {'order': 'A2'}" in told
    assert "other.yaml: name: 'late' is not the file's name, 'other'" in told
    assert "notes.txt" not in told


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (change("examples", 0, "goal", to="Is A1 late?"), "no pattern matches it"),
        (change("others", to=["Why is A1 late?"]), "others: it matches"),
        (change("plan", "steps", 0, "tool", to=None), "names its tool"),
        (change("plan", "steps", 0, "risk", to="none"), "risk"),
    ],
)
def test_examples_are_tried_when_a_template_is_loaded(tmp_path: Path, broken: dict[str, Any], told: str) -> None:
    """A template whose example does not match, or gives no plan, or that matches what it must not, is refused."""
    (tmp_path / "late.yaml").write_text(yaml.safe_dump(broken))
    with pytest.raises(ConfigurationError) as refusal:
        load_templates(tmp_path)
    assert told in str(refusal.value)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A configured folder that does not exist is an error, not an empty list."""
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_templates(tmp_path / "nowhere")


def test_a_user_s_template_replaces_the_shipped_one_of_its_name(tmp_path: Path) -> None:
    """Own templates come first, and one with a shipped name stands in for it."""
    shipped = {template.name for template in load_templates()}
    assert shipped
    name = min(shipped)
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(change("name", to=name)))
    both = load_templates(tmp_path)
    assert both[0].title() == "Late order"
    assert sorted(template.name for template in both) == sorted(shipped)
