"""`surestep doctor`: is everything there that a run needs? Each check says what it found and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graph.commands import shared
from graph.commands.printing import harmless, print_json, show
from graph.commands.shared import load_settings, waited
from plans.errors import SurestepError
from plans.wording import counted

if TYPE_CHECKING:
    from graph.settings import Settings

Mark = Literal["well", "note", "ill"]
SHOWN = {"well": ("✓", "green"), "note": ("·", "yellow"), "ill": ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: "well", "note" (works, but know this) or "ill" (a run would fail)."""

    check: str
    mark: Mark
    message: str


def examine(toolkits: Sequence[str], *, as_json: bool) -> None:
    """Print every finding; exit 2 if one is ill."""
    from rich.text import Text

    settings = load_settings(toolkits)
    findings = waited(lambda: _findings(settings, toolkits))
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            show(Text.assemble(SHOWN[finding.mark], f" {finding.check}: {harmless(finding.message)}"))
    if any(finding.mark == "ill" for finding in findings):
        raise SystemExit(2)


async def _findings(settings: Settings, toolkits: Sequence[str]) -> list[Finding]:
    return [
        await asyncio.to_thread(_settings),
        await asyncio.to_thread(_who, settings),
        *await _database(settings),
        await asyncio.to_thread(_results, settings),
        await asyncio.to_thread(_archive, settings),
        await asyncio.to_thread(_output, settings.output),
        await asyncio.to_thread(_toolkits, settings),
        await _tools(settings, toolkits),
        await _templates(settings),
        await asyncio.to_thread(_policy, settings),
        _model(settings),
    ]


def _settings() -> Finding:
    from checkpoints.location import SETTINGS_FILE
    from graph.settings import unknown_variables

    file = shared.settings_file or SETTINGS_FILE
    found = str(file.absolute()) if file.exists() else f"defaults and environment; there is no {file} here"
    strange = [
        f"{name} says nothing{f', did you mean {meant}?' if meant else ''}"
        for name, meant in unknown_variables().items()
    ]
    return Finding("settings", "note" if strange else "well", "; ".join((found, *strange)))


def _policy(settings: Settings) -> Finding:
    from graph.commands.doctor_policy import policy_finding

    return Finding("policy", *policy_finding(settings))


def _who(settings: Settings) -> Finding:
    """Who works here, and whom a server of these settings would serve."""
    from graph.principal import principal_from
    from graph.tokens import verifier_from

    who = principal_from(settings)
    roles = f", acting as {' or '.join(who.roles)}" if who.roles else ""
    told = f"{who.name}{roles}{f', of the tenant {who.tenant}' if who.tenant else ''}"
    try:
        verifier = verifier_from(settings)
    except SurestepError as error:
        return Finding("who", "ill", str(error))
    asks = "asks nobody who they are" if verifier is None else f"asks for tokens ({verifier.algorithm})"
    return Finding("who", "well", f"{told}; a server {asks}")


async def _database(settings: Settings) -> list[Finding]:
    from checkpoints.database import open_database
    from checkpoints.queries import QUERIES
    from graph.commands.doctor_waiting import told_of_waiting

    try:
        async with open_database(settings.database_url, settings.folder) as database:
            version = (await database.fetch("SELECT current_setting('server_version') AS version"))[0]["version"]
            counted = await database.fetch(QUERIES["runs_by_status"], (settings.tenant,))
            waiting = await told_of_waiting(database, settings)
            older = await database.fetch(QUERIES["older_forms"])
    except SurestepError as error:
        return [Finding("database", "ill", str(error))]
    where = "yours" if settings.database_url else f"embedded, in {settings.folder.absolute()}"
    runs = ", ".join(f"{row['n']} {row['status']}" for row in counted) or "none yet"
    return [
        Finding("database", "well", f"PostgreSQL {version}, {where}; runs: {runs}"),
        *(Finding(*each) for each in waiting),
        *_older(older),
    ]


def _older(forms: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Workers that do not know the version in which plans are written: they have read an older form of them."""
    told = [
        f"plans of {counted(row['runs'], 'run')} were read in version {row['read']} though written in version "
        f"{row['written']}, last at {row['last'].astimezone():%Y-%m-%d %H:%M}: a worker is of an older release"
        for row in forms
    ]
    return [Finding("plan versions", "note", "; ".join(told))] if told else []


def _results(settings: Settings) -> Finding:
    """Whether large results can be stored and read again; the probe is a few bytes, always the same."""
    from hashlib import sha256

    from checkpoints.artifact_files import files_at

    url = settings.artifacts_url or str((settings.folder / "artifacts").absolute())
    body = b"surestep doctor"
    try:
        files = files_at(url)
        files.write(sha256(body).hexdigest(), body)
        if files.read(sha256(body).hexdigest()) == body:
            return Finding("large results", "well", url)
        return Finding("large results", "ill", f"{url} gives back other bytes than were stored")
    except SurestepError as error:
        return Finding("large results", "ill", str(error))


def _archive(settings: Settings) -> Finding:
    """Where runs go when they are over, and, for a place that somebody has chosen, whether it takes files."""
    from checkpoints.places import name_of, place_at

    url = settings.archive_url or str((settings.folder / "archive").absolute())
    try:
        if settings.archive_url is not None:
            place, probe, body = place_at(url), ".surestep-doctor/probe", b"surestep doctor"
            place.write(probe, body)
            given = place.read(probe)
            place.remove(".surestep-doctor")
            if given != body:
                return Finding("archive", "ill", f"{name_of(url)} gives back other bytes than were stored")
    except SurestepError as error:
        return Finding("archive", "ill", str(error))
    return Finding("archive", "well", name_of(url))


def _output(folder: Path) -> Finding:
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Finding("output folder", "well", str(folder.absolute()))
    except OSError as error:
        said = f"{folder.absolute()} cannot be written ({error.strerror}); set SURESTEP_OUTPUT to a folder that can"
        return Finding("output folder", "ill", said)


def _toolkits(settings: Settings) -> Finding:
    from graph.registries import registry_from
    from tools.spec_faults import without_description

    try:
        registry, notices = registry_from(settings)
        notices += [without_description(tool.name) for tool in registry.values() if not tool.description.strip()]
    except SurestepError as error:
        return Finding("toolkits", "ill", str(error))
    kits = ", ".join(f"{kit.name} ({len(kit.tools)})" for kit in registry.toolkits)
    return Finding("toolkits", "note" if notices else "well", "; ".join((kits, *notices)))


async def _tools(settings: Settings, toolkits: Sequence[str]) -> Finding:
    from graph.commands.doctor_tools import told_of_tools

    try:
        told = await told_of_tools(settings, toolkits)
    except SurestepError:
        return Finding("tools", "note", "not looked at: toolkits or database cannot be used")
    return Finding("tools", "note" if told else "well", "; ".join(told) or "all are on, none is left alone")


async def _templates(settings: Settings) -> Finding:
    from graph.registries import templates_from

    try:
        templates = await asyncio.to_thread(templates_from, settings)
    except SurestepError as error:
        return Finding("templates", "ill", str(error))
    aside = await _aside(settings)
    names = [template.name for template in templates if (template.name, template.sha256) in aside]
    told = f"; set aside because they have failed: {', '.join(names)} (`{shared.surestep('templates')}` says more)"
    return Finding("templates", "note" if names else "well", f"{len(templates)}{told if names else ''}")


async def _aside(settings: Settings) -> frozenset[tuple[str, str]]:
    """Templates that are set aside, as far as a database can be looked at."""
    from checkpoints.glance import glance
    from checkpoints.template_uses import TemplateUses

    try:
        async with glance(settings.database_url, settings.folder) as database:
            return await TemplateUses(database).aside()
    except SurestepError:  # what is wrong with the database is a finding of its own
        return frozenset()


def _model(settings: Settings) -> Finding:
    from graph.opening import model_from

    if not settings.model:
        return Finding("model", "note", "none is configured: templates and given plans work, other goals do not")
    try:
        model = model_from(settings, settings.model)
    except SurestepError as error:
        return Finding("model", "ill", str(error))
    return Finding("model", "well", f"{settings.model} at {model.settings.endpoint if model else '-'} (not asked)")
