"""What a person changes of a plan, or of a step's arguments: in an editor, or by the command `edit`."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

from graph.commands.printing import say
from graph.commands.reading import read_text, values
from nodes.answers import ABOUT_A_PLAN
from plans.decisions import ABOUT_PLAN, ApprovalRequest, Edit
from plans.errors import InvalidInput, SurestepError

if TYPE_CHECKING:
    from nodes.state import ApproveMode
    from plans.values import JSON


def as_yaml(value: object) -> str:
    """A plan, or arguments, as a person reads and edits them."""
    import yaml

    return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=110))


async def edited(request: ApprovalRequest) -> Edit | None:
    """What a person makes of it in an editor; None where nothing was changed, or no editor could be started."""
    shown = request.args.get("draft") if request.kind == "question" else request.args
    before = as_yaml(shown or {"goal": request.args.get("goal"), "steps": []})
    try:
        after = await asyncio.to_thread(_in_editor, before)
        if after.strip() == before.strip():
            say("  nothing was changed; nothing is decided")
            return None
        return Edit(args=plan_of(after) if request.kind in ABOUT_A_PLAN else mapping_of(after))
    except SurestepError as error:
        say(f"  {error}")
        return None


def _in_editor(text: str) -> str:
    """The text as somebody has left it in an editor. Raises InvalidInput where none can be started, or it fails."""
    from graph.settings import editor

    with TemporaryDirectory(prefix="surestep-") as folder:
        file = Path(folder, "edit.yaml")
        file.write_text(text, "utf-8")
        try:
            subprocess.run([*editor(), str(file)], check=True)  # noqa: S603  # the person's own editor
            return file.read_text("utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise InvalidInput(f"nothing was edited ({error}); set EDITOR to an editor, or answer later") from None


def plan_of(text: str) -> dict[str, JSON]:
    """The plan in a text, as the answer to a question about one. Raises PlanRejected with all faults."""
    from nodes.given import given_draft

    shown: dict[str, JSON] = given_draft(text).model_dump(mode="json", exclude_defaults=True)
    return shown


def mapping_of(text: str) -> dict[str, Any]:
    """The arguments in a text (YAML or JSON). Raises InvalidInput."""
    from plans.yaml_text import NotYAML, read_yaml

    try:
        found, _ = read_yaml(text)
    except NotYAML as error:
        raise InvalidInput(f"the arguments are neither YAML nor JSON: {error}") from None
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise InvalidInput('the arguments are no object of names and values, such as {"to": "ann"}')
    return dict(found)


def wanted(step: str, plan: Path | None, args: str | None, changes: Sequence[str]) -> Edit | list[str]:
    """What `edit` was given: a whole plan, all arguments, or those to change. Raises InvalidInput for none or two."""
    if sum(bool(given) for given in (plan, args, changes)) != 1:
        raise InvalidInput("say in one way what it should be: --plan FILE (of @plan), --args JSON or --arg NAME=VALUE")
    if (plan is not None) != (step == ABOUT_PLAN):
        raise InvalidInput(f"--plan is for {ABOUT_PLAN}; a step's arguments are changed by --args or --arg")
    if plan is not None:
        return Edit(args=plan_of(read_text(str(plan), "the plan")))
    return Edit(args=mapping_of(args)) if args is not None else list(changes)


def edit(
    thread: str,
    step: str,
    given: Edit | list[str],
    toolkits: Sequence[str],
    approve: ApproveMode,
    *,
    as_json: bool,
) -> NoReturn:
    """Record the change as the decision, and go on with the run."""
    from graph.commands.people import decide

    if isinstance(given, Edit):
        decide(thread, step, given, toolkits, approve, as_json=as_json)
    changes = values(given, "--arg")
    decide(thread, step, lambda asked: Edit(args={**asked.args, **changes}), toolkits, approve, as_json=as_json)
