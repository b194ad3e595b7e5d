"""The templates of an agent as people see them: how they have served, which are set aside, and new ones from runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoints.template_uses import Standing, TemplateUses
from nodes.template_choice import known_to
from nodes.template_learning import Learned, learned
from nodes.template_plans import named
from plans.errors import InvalidInput
from plans.values import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graph.driving import Driver
    from nodes.templates import Template


@dataclass(frozen=True, slots=True)
class TemplateStanding:
    """How one template stands now."""

    name: str
    sha256: str
    standing: Standing

    def as_json(self) -> dict[str, JSON]:
        """The same for programs."""
        now = self.standing
        return {
            "sha256": self.sha256,
            "used": now.used,
            "succeeded": now.succeeded,
            "failed": now.failed,
            "success_rate": None if now.success_rate is None else round(now.success_rate, 4),
            "set_aside_at": now.set_aside_at.isoformat() if now.set_aside_at else None,
            "because": now.because,
        }


class TemplateLibrary:
    """What `agent.templates` is."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._engine = driver.engine

    async def standing(self) -> list[TemplateStanding]:
        """How each of the agent's templates has served, in their order."""
        return await standing_of(self._known, self._engine.template_uses)

    @property
    def _known(self) -> Sequence[Template]:
        return known_to(self._engine, self._driver.principal.tenant)

    async def restore(self, name: str) -> None:
        """Have a template that is set aside matched again. Raises InvalidInput for one that is not, or is none."""
        await restored(self._known, self._engine.template_uses, name)

    async def learn(self, run: str, *, name: str | None = None) -> Learned:
        """A template from a clean run, by its thread or run id: a text to be reviewed, which nothing uses yet.

        Raises InvalidInput with every reason why the run gives none, and UnknownThread.
        """
        record = await self._engine.runs.get(run)
        if record is None or record.tenant != self._driver.principal.tenant:
            record = await self._driver.latest(run)
        picture = await self._driver.picture(record.run_id)
        return learned(picture, self._engine.registry, self._engine.templates, name)


async def standing_of(templates: Sequence[Template], uses: TemplateUses) -> list[TemplateStanding]:
    """How each of these templates has served; a content that was never used has an empty standing."""
    found = await uses.standing()
    return [
        TemplateStanding(each.name, each.sha256, found.get((each.name, each.sha256), Standing())) for each in templates
    ]


async def restored(templates: Sequence[Template], uses: TemplateUses, name: str) -> None:
    """Have a template matched again. Raises InvalidInput."""
    template = named(name, templates)
    if not await uses.restore(template.name, template.sha256):
        raise InvalidInput(f"the template {name!r} is not set aside; there is nothing to restore")
