"""Questions to the user: which words answer them."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.clarification import LONGEST, NO, YES, NoAnswer, Question

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


@given(st.lists(WORDS.filter(lambda word: word == word.strip()), min_size=2, max_size=6, unique=True), st.data())
def test_a_choice_is_answered_by_one_of_its_own_words_and_comes_back_as_it_is_written(
    choices: list[str], data: st.DataObject
) -> None:
    """Whatever surrounds it; and the answer is always one that the question's schema allows."""
    question = Question("which?", "choice", tuple(choices))
    chosen = data.draw(st.sampled_from(choices))
    assert question.answer(f"  {chosen}\n") == chosen
    jsonschema.validate(chosen, question.schema)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question("which?", "choice", ("red", "blue")), "green"),
        (Question("which?", "choice", ("red", "blue")), "1"),
        (Question("which?", "choice", ("Red", "RED")), "red"),
        (Question("which?", "choice", ("3 days", "5 days")), "3"),
        (Question("sure?", "confirmation"), "maybe"),
        (Question("sure?", "confirmation"), "yes, but not today"),
        (Question("what?"), " \n "),
        (Question("what?"), "x" * (LONGEST + 1)),
        (Question("what?"), "a\x00b"),
    ],
)
def test_what_is_no_answer_is_refused_and_nothing_is_guessed(question: Question, said: str) -> None:
    """A word that is near, a number, two that are alike, nothing, too much, and what cannot be stored."""
    with pytest.raises(NoAnswer, match=r"answer"):
        question.answer(said)


def test_yes_and_no_are_told_apart_in_any_case_and_in_several_languages() -> None:
    """No word means both, and the result is true or false."""
    question = Question("sure?", "confirmation")
    assert not YES & NO
    assert [question.answer(said) for said in ("Yes", " NO ", "ja", "否")] == [True, False, True, False]


def test_a_question_reads_the_tool_s_arguments_with_their_defaults() -> None:
    """What the plan leaves out is a question that is answered in words."""
    assert Question.of({"question": "what?", "kind": None}) == Question("what?")
    assert Question.of({"question": "which?", "kind": "choice", "choices": ["a", "b"]}).choices == ("a", "b")
