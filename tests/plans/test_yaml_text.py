"""Plan files in YAML: what a person sees is what is read."""

from __future__ import annotations

import json
import time

import pytest
import yaml
from hypothesis import assume, given

from plans.json_text import BEYOND
from plans.reader import read_plan
from plans.values import JSON, canonical
from plans.yaml_text import NotYAML, read_yaml
from tests.plans.sample import DRAFT, PLAN, TEXT, names, values

FILE = """\
# Look an order up, then answer.
goal: g
steps:
  - id: s1
    action: tool
    tool: get_order
    args: {order_id: A1}     # a flow mapping
    depends_on: []
    reason: r
  - id: s2
    action: tool
    tool: send_reply
    args:
      order_id: ${s1.id}
      body: hi
    depends_on:
      - s1
    reason: "r"
"""


def read(text: str) -> JSON:
    """The value of a YAML text in which no key stands twice."""
    value, notes = read_yaml(text)
    assert notes == []
    return value


@pytest.mark.parametrize(
    "text",
    [
        FILE,
        f"---\n{FILE}...\n",
        f"%YAML 1.2\n---\n{FILE}",
        f"\ufeff{FILE}",
        FILE.replace("\n", "\r\n"),
        yaml.safe_dump(PLAN),
        FILE + "# end",
    ],
    ids=["block", "document", "directive", "bom", "crlf", "dumped", "comment"],
)
def test_a_plan_file_in_yaml_is_read_as_it_stands(text: str) -> None:
    """Comments, indentation and quoting are YAML's own: such a file is the plan, not a repaired one."""
    reading = read_plan(text)
    assert (reading.draft, reading.repaired, reading.faults) == (DRAFT, False, ())


def test_yaml_inside_a_fence_is_a_repaired_plan() -> None:
    """A model that answers in YAML is understood; the fence around it counts as repair."""
    reading = read_plan(f"Sure!\n\n```yaml\n{FILE}```\n")
    assert (reading.draft, reading.repaired) == (DRAFT, True)
    assert read_plan(f"```yaml\n{FILE}```\n```yaml\n{FILE}```\n").draft is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("010", "010"),
        ("0o17", "0o17"),
        ("0x1F", "0x1F"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1:30:00", "1:30:00"),
        ("+5", "+5"),
        (".5", ".5"),
        ("5.", "5."),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("NaN", "NaN"),
        ("=", "="),
        ("<<", "<<"),
        ("1e3", 1000.0),
        ("1.0", 1.0),
        ("-0", 0),
        ("42", 42),
        ("-7", -7),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'42'", "42"),
        ('"true"', "true"),
        ("! 42", "42"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">\n  a\n  b\n", "a b\n"),
        ("9" * 30, BEYOND),
    ],
)
def test_only_what_json_knows_has_a_type(written: str, meant: JSON) -> None:
    """Dates, times, octals, yes and no stay the text that stands there; numbers, true, false and null are JSON's."""
    assert canonical(read(f"goal: {written}")) == canonical({"goal": meant})


def test_keys_are_text_as_they_stand() -> None:
    """A key that looks like a number, a date or a truth is still the text that is written."""
    assert read("1: a\nyes: b\nnull: c\n2024-01-01: d\n<<: e\n") == {
        "1": "a",
        "yes": "b",
        "null": "c",
        "2024-01-01": "d",
        "<<": "e",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goal: *a", "stands inside or before what it names|undefined"),
        ("goal: &a [*a]", "stands inside or before"),
        ("goal: !!python/object/apply:os.system ['true']", "tag"),
        ("goal: !!int '5'", "tag"),
        ("goal: !!binary aGk=", "tag"),
        ("goal: !custom x", "tag"),
        ("? [a]\n: b\ngoal: c", "a key must be text"),
        ("goal: &a b\n*a : c", "an alias cannot be a key"),
        ("goal: a\n---\ngoal: b", "second document"),
        ("goal: [a", "line 2, column 1"),
        ("goal: a\n\tsteps: b", "line 2"),
        ("goal: 'a", "line"),
        ("goal: a\nsteps: b: c", "line 2, column 9"),
        ("goal: \x01", "characters that YAML does not allow"),
        ("goal: \ud800", "characters that YAML does not allow"),
        ("goal: " + "[" * 70 + "]" * 70, "nested deeper"),
        ("goal: " + "[" * 100_000, "nest"),
        ("goal: @x", "line 1"),
        ('goal: "\\ud800"', "line 1"),
    ],
)
def test_more_of_yaml_than_a_plan_needs_is_refused(text: str, said: str) -> None:
    """Tags, complex keys, several documents and mistakes are refused in a sentence that says where."""
    with pytest.raises(NotYAML, match=said):
        read_yaml(text)
    reading = read_plan(text)
    assert [fault.code for fault in reading.faults] == ["PLAN_SYNTAX"]


def test_a_key_that_stands_twice_in_yaml_is_a_fault_with_its_path() -> None:
    """YAML's readers take the last of two keys in silence; here both are named."""
    doubled = FILE.replace("args: {order_id: A1}", "args: {order_id: A1, order_id: A2}")
    (fault,) = read_plan(doubled).faults
    assert (fault.code, fault.path, fault.step) == ("DUPLICATE_KEY", "steps[0].args.order_id", "s1")
    assert "DUPLICATE_KEY" in {fault.code for fault in read_plan(FILE + "goal: h\n").faults}


def test_anchors_are_read_until_they_multiply() -> None:
    """An alias is what it names; a file that grows by aliases is refused before it does."""
    assert read("goal: &a {x: [1, 2]}\nsteps: [*a, *a]") == {"goal": {"x": [1, 2]}, "steps": [{"x": [1, 2]}] * 2}
    bomb = "goal: x\na0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    started = time.process_time()
    with pytest.raises(NotYAML, match="aliases multiplying"):
        read_yaml(bomb)
    assert time.process_time() - started < 2
    assert [fault.code for fault in read_plan(bomb).faults] == ["PLAN_SYNTAX"]


@given(values, names)
def test_json_is_yaml(value: JSON, key: str) -> None:
    """Any JSON value of printable text reads the same by both readers."""
    text = json.dumps({key: value}, ensure_ascii=False)
    assume(text.isprintable())
    assert canonical(read(text)) == canonical({key: value})


@given(values)
def test_what_a_yaml_writer_writes_is_what_it_had(value: JSON) -> None:
    """A plan of printable text that another program wrote as YAML keeps its values: what needs quotes has them."""
    assume(json.dumps(value, ensure_ascii=False).isprintable())
    text = yaml.safe_dump({"goal": value}, allow_unicode=True)
    assert canonical(read(text)) == canonical({"goal": value})


def test_prose_in_front_of_json_is_no_yaml() -> None:
    """A line that only looks like YAML does not keep the JSON behind it from being read."""
    reading = read_plan(f"goal: late orders\n\n{TEXT}")
    assert (reading.draft, reading.repaired) == (DRAFT, True)


def test_a_misspelt_first_field_is_still_a_yaml_file() -> None:
    """The faults of a YAML file are about its fields, not about missing braces."""
    faults = read_plan(FILE.replace("goal:", "gaol:")).faults
    assert {fault.path for fault in faults} == {"goal", "gaol"}
