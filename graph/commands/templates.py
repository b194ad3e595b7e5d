"""`templates`: which goals need no planner, how their templates have served, and new ones from clean runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.commands.glancing import glanced
from graph.commands.printing import print_json, say, show, write_out
from graph.commands.shared import load_settings, opened, surestep, waited
from plans.errors import InvalidInput
from plans.wording import counted

if TYPE_CHECKING:
    from checkpoints.database import Database
    from graph.settings import Settings
    from graph.template_library import TemplateStanding
    from nodes.template_learning import Learned
    from nodes.templates import Template


def list_templates(language: str, *, as_json: bool) -> None:
    """The templates, with goals that each of them serves, and how it has served."""
    from graph.registries import templates_from
    from nodes.templates import overview

    settings = load_settings([])
    templates = [each for each in templates_from(settings) if each.is_for(settings.tenant)]
    standing, why = _look(settings, templates)
    shown: list[dict[str, Any]] = overview(templates, language)
    if as_json:
        now = [{**each, "now": standing[each["name"]].as_json() if standing else None} for each in shown]
        print_json({"templates": now, "looked_at": why is None, "why": why})
        return
    for template in shown:
        _show(template, standing.get(template["name"]))
    if why is not None:
        say(f"how they have served was not looked at: {why}")


def learn_template(run: str, to: Path | None, name: str | None, toolkits: Sequence[str], *, as_json: bool) -> None:
    """A run's template on stdout or in a new file. A place without an ending is a folder, made if it is missing."""
    file = to if to is not None and to.suffix and not to.is_dir() else None
    name = name or (file.stem if file is not None else None)
    opening = opened(toolkits, calls=False)

    async def work() -> Learned:
        async with opening as agent:
            return await agent.templates.learn(run, name=name)

    learned = waited(work)
    path = None if to is None else _written(file or to / f"{learned.name}.yaml", learned, folder=file is None)
    if as_json:
        said = {"name": learned.name, "template": learned.text, "notes": list(learned.notes)}
        print_json({**said, "file": str(path) if path else None})
        return
    if path is None:
        write_out(learned.text)
    else:
        show(str(path))
    say("Review it. It is used once it is in your folder of templates (SURESTEP_TEMPLATES) under its own name.")


def restore_template(name: str, *, as_json: bool) -> None:
    """A template that is set aside is matched again."""
    opening = opened([], calls=False)

    async def work() -> None:
        async with opening as agent:
            await agent.templates.restore(name)

    waited(work)
    if as_json:
        print_json({"restored": name})
    else:
        show(f"{name} is matched again; it is judged by its runs from now on")


def _look(settings: Settings, templates: Sequence[Template]) -> tuple[Mapping[str, TemplateStanding], str | None]:
    """How the templates stand on the database, by name, or why that is not known."""

    async def look(database: Database) -> list[TemplateStanding]:
        from checkpoints.template_uses import TemplateUses
        from graph.template_library import standing_of

        return await standing_of(templates, TemplateUses(database))

    found, why = glanced(settings, look)
    return {each.name: each for each in found or ()}, why


def _show(template: Mapping[str, Any], now: TemplateStanding | None) -> None:
    from rich.text import Text

    show(Text.assemble((template["name"], "bold"), f"  {template['title']}  ", (f"[{template['toolkit']}]", "dim")))
    if now is not None and now.standing.used:
        show(Text(f"  {_served(now)}", style="yellow" if now.standing.set_aside_at else "dim"))
    for parameter in template["parameters"]:
        needed = "" if parameter["required"] else " (may be left out)"
        show(Text(f"  {parameter['name']}: {parameter['about'] or ''}{needed}", style="dim"))
    for example in template["examples"]:
        show(f"  {example}")


def _served(now: TemplateStanding) -> str:
    standing = now.standing
    rate = "" if standing.success_rate is None else f", {standing.success_rate:.0%} of those that tell succeeded"
    used = f"used in {counted(standing.used, 'run')}{rate}"
    if standing.set_aside_at is None:
        return used
    since = f"{standing.set_aside_at.astimezone():%Y-%m-%d %H:%M}"
    again = surestep("templates", "restore", now.name)
    return f"{used}; set aside since {since} because {standing.because}. Matched again by: {again}"


def _written(path: Path, learned: Learned, *, folder: bool) -> Path:
    """The file that was written; one that is there already is left alone. Raises InvalidInput."""
    if path.stem != learned.name or path.suffix != ".yaml":
        raise InvalidInput(
            f"the template {learned.name} belongs into a file called {learned.name}.yaml, not {path.name}"
        )
    try:
        if folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(learned.text)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already; choose another --name, or take it away") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    return path
