"""What a goal may be: some text, not a book, and storable."""

from __future__ import annotations

from plans.errors import InvalidInput
from plans.values import unclean

MAX_GOAL = 20_000
"""Longest goal in characters: about five pages. Longer text is an input, not a goal."""


def goal_problem(text: str) -> str | None:
    """What is wrong with a goal, as the end of a sentence that begins with "the goal"; None if nothing is."""
    text = text.strip()
    if not any(letter.isprintable() and not letter.isspace() for letter in text):
        return "is empty; say in a sentence what you want"
    if len(text) > MAX_GOAL:
        return f"has {len(text):,} characters; at most {MAX_GOAL:,} are read. Put long text into a file and name it"
    for _, why in unclean(text):
        return f"{why}; remove it"
    return None


def check_goal(text: str) -> str:
    """The goal without the white space around it. Raises InvalidInput."""
    if problem := goal_problem(text):
        raise InvalidInput(f"the goal {problem}")
    return text.strip()
