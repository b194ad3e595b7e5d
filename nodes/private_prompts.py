"""What a model is not shown: personal data and credentials of a prompt. Stand-ins go out in their place, and what they
stand for is put back in the answer, so that plans and texts come out as if the model had seen it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from nodes.model_errors import NotUsable
from nodes.prompts import Rendered
from plans.credentials import formats_blanked
from plans.personal import Pseudonyms
from tools.privacy import NotLookedThrough, Privacy
from tools.redaction import known_blanked

if TYPE_CHECKING:
    from nodes.models import ModelAnswer

TOLD = (
    "Some values are not shown to you. A text in capitals between angle brackets, such as {names}, stands for one of "
    "them. Where you need such a value, write its stand-in exactly as it is here: it is replaced before anything is "
    "done with it. Never invent one."
)
"""What a model is told of them, in a prompt that has any."""
STANDING: ContextVar[Pseudonyms | None] = ContextVar("STANDING", default=None)
"""The stand-ins of the question that is being asked, for who hears its answer as it comes."""


def hidden(prompt: Rendered, privacy: Privacy) -> tuple[Rendered, Pseudonyms]:
    """The prompt as it may be sent, and its stand-ins. Raises NotUsable where it could not be looked through: it is
    not sent then."""
    pseudonyms = Pseudonyms(privacy.finding())
    try:
        rules, task = (pseudonyms.hide(_without_credentials(text)) for text in (prompt.rules, prompt.task))
    except NotLookedThrough as failed:
        message = f"the model is not asked: personal data could not be looked for in the question ({failed})"
        raise NotUsable(message) from None
    if not pseudonyms.names:
        return replace(prompt, rules=rules, task=task), pseudonyms
    told = TOLD.format(names=", ".join(pseudonyms.names[:3]))
    return replace(prompt, rules=f"{rules}\n\n{told}", task=task), pseudonyms


def restored(answer: ModelAnswer, pseudonyms: Pseudonyms) -> ModelAnswer:
    """The answer with what the stand-ins stand for."""
    refusal = pseudonyms.restore(answer.refusal) if answer.refusal else answer.refusal
    return replace(answer, text=pseudonyms.restore(answer.text), refusal=refusal)


def heard(text: str) -> str:
    """A part of an answer that is still coming, likewise."""
    pseudonyms = STANDING.get()
    return text if pseudonyms is None else pseudonyms.restore(text)


def _without_credentials(text: str) -> str:
    """Those of runs are placeholders already; what is left are those of settings, and keys in what strangers have
    written about their tools. Names beside which a password might stand are left: schemas are full of them."""
    return str(formats_blanked(known_blanked(text)))
