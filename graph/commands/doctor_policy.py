"""What `surestep doctor` says of the policy: whether it can be used, and whether something is odd about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graph.commands import shared
from graph.policy_file import PolicyFile
from nodes.policing import any_call
from plans.errors import SurestepError
from plans.policy_lint import remarks
from plans.wording import counted

if TYPE_CHECKING:
    from graph.settings import Settings


def policy_finding(settings: Settings) -> tuple[Literal["well", "note", "ill"], str]:
    """How it stands, in a sentence."""
    if settings.policy is None:
        return "well", "there is none: what is of high risk asks anybody"
    try:
        policy = PolicyFile(settings.policy).read()
    except SurestepError as error:
        return "ill", str(error)
    try:
        odd = remarks(policy, [any_call(tool) for tool in shared.registry_for(settings).values()])
    except SurestepError:  # what is wrong with a toolkit is told where they are looked at
        odd = []
    said = f"{settings.policy}: {counted(len(policy.rules), 'rule')}"
    more = f"{len(odd)} of what it says is odd ({shared.surestep('policy', 'check')})"
    return ("note", f"{said}; {more}") if odd else ("well", said)
