"""The toolkit `person`: one tool that asks the user what only they can tell.

    ask_user(question, kind="text", choices=[])        {"answer": text, or true or false}        read

It is never called: a step that names it waits for the user's answer, and that is its result (`nodes/clarify.py`). A
toolkit of one's own with a tool of that name takes its place.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from plans.failure import ToolFailure
from tools.registry import Toolkit
from tools.tool import Tool

ASK_USER = "ask_user"

person = Toolkit("person", description="Asks the user.")


class Answer(TypedDict):
    """What the user has said."""

    answer: str | bool


RULES = (
    {
        "condition": "kind != 'choice' || length(choices || `[]`) > `1`",
        "message": "a question of kind choice has two choices or more",
    },
    {"condition": "kind == 'choice' || !choices", "message": "only a question of kind choice has choices"},
    {"check": "length_at_most", "arg": "question", "value": 2_000, "name": "a short question"},
)


@person.tool(effect="read", output_trust="trusted", repeats=None, rules=RULES)
async def ask_user(
    question: str, kind: Literal["text", "choice", "confirmation"] = "text", choices: list[str] | None = None
) -> Answer:
    """Ask the user, in one plain sentence of their language, for something that only they can tell.

    Args:
        question: What they are asked.
        kind: text for words of their own, choice for one of `choices`, confirmation for yes (true) or no (false).
        choices: The answers they may give, two or more; only with kind choice.
    """
    raise ToolFailure(
        "TOOL_ERROR", f"the user is asked by a step of a run, and not here: {question} ({kind}, {choices})"
    )


def asks_user(tool: Tool | None) -> bool:
    """Whether a step with this tool waits for the user, where another would call it."""
    return tool is not None and tool.name == ASK_USER and tool.toolkit == person.name
