"""Which template a goal's plan is made of: the one that was named, the first that matches, or one that a small model
fills because it is near. Those that are set aside are used only by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.journaled_model import JournaledModel
from nodes.model_errors import ModelFailed
from nodes.offered import prompt_inputs
from nodes.state import Drafted, TemplateUse
from nodes.template_filler import FILLER, fill_by_model
from nodes.template_near import offered
from nodes.templates import Filled, Template, choose, match
from plans.faults import errors_among
from plans.lint import lint

if TYPE_CHECKING:
    from nodes.engine import Engine
    from nodes.session import Session
    from nodes.state import RunHead


def known_to(engine: Engine, tenant: str) -> list[Template]:
    """The templates of a tenant: its own, and those of all."""
    return [template for template in engine.templates if template.is_for(tenant)]


async def from_template(engine: Engine, head: RunHead, goal: str, name: str | None = None) -> Filled | None:
    """The template that was named, whatever its standing; else the first that does what the whole goal asks, of those
    that are not set aside. Raises InvalidInput."""
    templates, inputs = known_to(engine, head.tenant), prompt_inputs(head)
    if name is not None:
        return choose(templates, name, inputs, goal)
    found = match(goal, inputs, templates, tools=set(engine.registry))
    if found is None or not await is_aside(engine, found.template):  # where nothing matches, nothing is looked up
        return found
    return match(goal, inputs, await in_use(engine, head.tenant), tools=set(engine.registry))


async def in_use(engine: Engine, tenant: str) -> list[Template]:
    """The templates of a tenant that are not set aside."""
    aside = await engine.template_uses.aside() if engine.templates else frozenset()
    return [template for template in known_to(engine, tenant) if (template.name, template.sha256) not in aside]


async def is_aside(engine: Engine, template: Template) -> bool:
    """Whether a template is set aside."""
    return (template.name, template.sha256) in await engine.template_uses.aside()


def why_aside(engine: Engine, head: RunHead) -> str | None:
    """What to tell of a goal for which no template is in use, if one would match it; None if none does."""
    templates = known_to(engine, head.tenant)
    aside = next((template.name for template in templates if template.matched(head.goal)), None)
    if aside is None:
        return None
    return (
        f"the template {aside!r} matches this goal and is set aside, because it has failed; no model is configured. "
        f"`surestep templates` says why, --template {aside} uses it all the same, and "
        f"`surestep templates restore {aside}` has it matched again"
    )


async def near_template(engine: Engine, head: RunHead) -> Template | None:
    """The template in use that a small model may be asked about; None without a small model of its own."""
    if engine.small is None or engine.small is engine.planner:
        return None  # to ask the planner itself would cost a call of its own
    found = offered(head.goal, prompt_inputs(head), await in_use(engine, head.tenant), tools=engine.registry)
    return found.template if found else None


async def from_near_template(session: Session) -> Drafted | None:
    """The draft of a template that a small model has filled, if it is a plan without faults; else None.

    The question is put once: entered again after a crash, the recorded answer is used.
    """
    engine, head = session.engine, session.head
    template = await near_template(engine, head)
    if template is None or engine.small is None:
        return None
    key = f"fill:{template.name}:{template.sha256[:12]}"
    try:
        filling = await fill_by_model(
            JournaledModel(session, engine.small, key), template, head.goal, prompt_inputs(head)
        )
    except ModelFailed:
        return None
    if filling.filled is None:
        return None
    drafted = drafted_from(filling.filled)
    draft = drafted.draft
    if draft is None or errors_among(
        lint(draft, engine.registry, inputs=tuple(head.input_values()), limits=head.limits)
    ):
        return None
    answer = filling.answer
    told = {"model": answer.model, "mode": answer.mode, "prompt_sha256": FILLER.sha256, "question": key}
    return drafted.model_copy(update=told)


def drafted_from(filled: Filled) -> Drafted:
    """The draft that a filled template gives, and what it says of a run that cannot be mended."""
    template = filled.template
    made_from = TemplateUse(name=template.name, sha256=template.sha256, parameters=dict(filled.parameters))
    return Drafted(
        draft=filled.draft,
        source="template",
        template=template.name,
        made_from=made_from,
        on_exhausted=filled.on_exhausted,
        critical=template.written.critical,
    )
