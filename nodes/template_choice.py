"""Which template a goal's plan is made of: the one that was named, else the first that matches and is not set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodes.state import Drafted, TemplateUse
from nodes.templates import Filled, Template, choose, match

if TYPE_CHECKING:
    from nodes.engine import Engine


async def from_template(engine: Engine, goal: str, inputs: Mapping[str, Any], name: str | None = None) -> Filled | None:
    """The template that was named, whatever its standing; else the first that does what the whole goal asks, of those
    that are not set aside. Raises InvalidInput."""
    if name is not None:
        return choose(engine.templates, name, inputs, goal)
    found = match(goal, inputs, engine.templates, tools=set(engine.registry))
    if found is None or not await is_aside(engine, found.template):  # where nothing matches, nothing is looked up
        return found
    return match(goal, inputs, await in_use(engine), tools=set(engine.registry))


async def in_use(engine: Engine) -> list[Template]:
    """The templates that are not set aside."""
    aside = await engine.template_uses.aside() if engine.templates else frozenset()
    return [template for template in engine.templates if (template.name, template.sha256) not in aside]


async def is_aside(engine: Engine, template: Template) -> bool:
    """Whether a template is set aside."""
    return (template.name, template.sha256) in await engine.template_uses.aside()


def why_aside(engine: Engine, goal: str) -> str | None:
    """What to tell of a goal for which no template is in use, if one would match it; None if none does."""
    aside = next((template.name for template in engine.templates if template.matched(goal)), None)
    if aside is None:
        return None
    return (
        f"the template {aside!r} matches this goal and is set aside, because it has failed; no model is configured. "
        f"`surestep templates` says why, --template {aside} uses it all the same, and "
        f"`surestep templates restore {aside}` has it matched again"
    )


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
