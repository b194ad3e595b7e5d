"""Steps are found in a plan that is still being written, and only where the text is surely one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.step_stream import MAX_TEXT, StepStream

TEXTS = st.text(st.sampled_from('ab"\\{}[],: \n\u4e2dsteps'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
STEPS = st.lists(st.dictionaries(TEXTS | st.just("steps"), VALUES, max_size=3), max_size=4)


def heard(*pieces: str) -> tuple[list[Any], bool]:
    """The steps that come out of a text in these pieces, and whether it was lost."""
    stream = StepStream()
    found = [json.loads(step) for piece in pieces for step in stream.feed(piece)]
    return found, stream.lost


@given(STEPS, st.dictionaries(TEXTS.filter(lambda name: name != "steps"), VALUES, max_size=2), st.data())
def test_however_a_plan_is_cut_into_pieces_its_steps_come_out_whole(
    steps: list[Any], beside: dict[str, Any], data: st.DataObject
) -> None:
    """Each step once, in order, as a reader of the whole text has it; whatever strings look like."""
    text = json.dumps({**beside, "steps": steps, "answer": "[{}]"}, indent=data.draw(st.sampled_from([None, 1])))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert heard(*pieces) == (steps, False)


def test_a_step_comes_out_with_its_last_character() -> None:
    """Not earlier, and not with the next one."""
    stream = StepStream()
    assert stream.feed('{"goal": "g", "steps": [{"id": "s1", "args": {"a": "}"}') == []
    assert stream.feed("}") == ['{"id": "s1", "args": {"a": "}"}}']
    assert stream.feed(', {"id": "s2"') == []


@pytest.mark.parametrize(
    "text",
    [
        'Here is the plan: {"steps": [{"id": "s1"}]}',
        '```json\n{"steps": [{"id": "s1"}]}',
        '<think>{"steps": [{"id": "s1"}]}',
        '[{"steps": [{"id": "s1"}]}]',
        '"{"steps": [{"id": "s1"}]}',
        '{"steps": "[{}]"}',
        '{"steps": {"id": "s1"}}',
        '{"steps": ["s1", {"id": "s1"}]}',
        '{"steps": [[{"id": "s1"}]]}',
        '{"steps": [1, {"id": "s1"}]}',
    ],
)
def test_a_text_that_is_not_surely_a_plan_gives_nothing(text: str) -> None:
    """Prose, fences, thoughts, lists and steps that are none are for the reader of the whole text."""
    assert heard(text) == ([], True)


@pytest.mark.parametrize(
    "more", [', "steps": [{"id": "s2"}]}', '} {"steps": [{"id": "s2"}]}', "}}", "} and so on", "]"]
)
def test_what_makes_a_text_ambiguous_ends_the_stream(more: str) -> None:
    """Steps that stand twice, a second plan or a rest: nothing more comes out."""
    assert heard('{"steps": [{"id": "s1"}]', more) == ([{"id": "s1"}], True)


def test_a_name_that_is_written_with_escapes_is_the_same_name() -> None:
    """`st\\u0065ps` is `steps` for every reader of JSON."""
    assert heard('{"st\\u0065ps": [{"id": "s1"}], "steps": [{"id": "s2"}]}') == ([{"id": "s1"}], True)


@given(st.text(st.sampled_from('{}[]",:\\ abs1'), max_size=60))
def test_any_text_at_all_is_borne(text: str) -> None:
    """Whatever a model writes, what comes out is text that begins and ends like an object."""
    found = StepStream().feed(f'{{"steps": [{text}')
    assert all(step.startswith("{") and step.endswith("}") for step in found)


def test_an_endless_text_is_lost() -> None:
    """Nobody listens to what is longer than any plan."""
    stream = StepStream()
    stream.feed('{"goal": "' + "x" * MAX_TEXT)
    assert stream.lost
