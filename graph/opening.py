"""From settings to an engine: the database, stores and models that a process has open."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from checkpoints.audit import Audit
from checkpoints.hiding import Hiding
from checkpoints.saver import PostgresSaver
from graph.logs import keep_logs_clean
from graph.principal import principal_from, principal_served
from graph.registries import registry_from, templates_from
from graph.setting_names import SECRET
from graph.settings import NO_VERIFIER, Settings
from graph.traces import keep_traces_clean
from nodes import schemas
from nodes.engine import Engine, EngineOptions
from nodes.engine_opening import open_engine
from nodes.model_settings import Price, configured
from nodes.models import Model
from nodes.policing import NO_POLICY, PolicySource
from plans.values import JSON
from plans.versions import PLAN_VERSIONS
from tools.privacy import BUILT_IN, Privacy
from tools.redaction import redacted_in, remember
from tools.registry import Registry, Toolkit

_LOG = logging.getLogger("surestep")


def options_from(settings: Settings, *, served: bool = False) -> EngineOptions:
    """What an engine needs of the settings; `served` for one that a server invokes for its callers. Asks where it is
    run: not for an event loop."""
    return EngineOptions(
        database_url=settings.database_url,
        folder=settings.folder.absolute(),
        artifacts_url=settings.artifacts_url,
        archive_url=settings.archive_url,
        output=settings.output.absolute(),
        input_root=settings.input_root,
        pool_size=settings.pool_size,
        prepare_threshold=settings.prepare_threshold,
        connections=settings.connections,
        lease_s=settings.lease_s,
        durability=settings.durability,
        eager=settings.eager,
        checks=settings.verifier_model != NO_VERIFIER,
        plan_versions=replace(PLAN_VERSIONS, canary=settings.plan_canary),
        on_unplannable=settings.on_unplannable,
        policy=policy_from(settings),
        approval_expires_s=settings.approval_expires_s,
        principal=principal_served(settings) if served else principal_from(settings),
        start_roles=settings.start_roles,
        review=settings.review,
        privacy=privacy_from(settings),
        sealing_key=settings.sealing_key.get_secret_value() if settings.sealing_key else None,
        secrets=settings.secrets,
        audit_key=audit_key_from(settings),
    )


def audit_key_from(settings: Settings) -> bytes | None:
    """The key that signs what was audited, if there is one."""
    return settings.audit_key.get_secret_value().encode() if settings.audit_key else None


def said_of(settings: Settings) -> dict[str, JSON]:
    """The settings that are not the defaults, as they may be told: of a secret only that it is set."""
    said: dict[str, JSON] = {}
    for name, value in settings.model_dump(mode="json", exclude_defaults=True).items():
        said[name] = "set" if name in SECRET else redacted_in(value)
    return {"surestep": version("surestep"), **said}


def policy_from(settings: Settings) -> PolicySource:
    """The policy that the settings name. Raises ConfigurationError for one that cannot be used."""
    if settings.policy is None:
        return NO_POLICY
    from graph.policy_file import PolicyFile

    found = PolicyFile(settings.policy.absolute())
    found.read()
    return found


def model_from(settings: Settings, name: str | None) -> Model | None:
    """The model of this name at the configured endpoint, or None where none is named. Raises ModelNotConfigured."""
    if not name:
        return None
    key = settings.api_key.get_secret_value() if settings.api_key else None
    price = settings.prices.get(name)
    return Model(
        replace(
            configured(name, settings.base_url, key),
            structured_output=settings.structured_output,
            timeout_s=settings.model_timeout_s,
            first_token_s=settings.model_first_token_s,
            prompt_tokens=settings.prompt_tokens,
            price=Price(price.prompt, price.completion) if price else None,
        ),
        privacy=privacy_from(settings),
    )


def secrets_in(settings: Settings) -> Iterator[str]:
    """Every secret of the settings: what is typed as one, and passwords in URLs."""
    for each in (getattr(settings, name) for name in type(settings).model_fields):
        said = each.get_secret_value() if isinstance(each, SecretStr) else ""
        if not said.endswith(".pem"):  # the path of a key's file is none
            yield said
    yield from (each.value.get_secret_value() for each in settings.secrets.values())
    for service in settings.openapi.values():
        yield from (each.get_secret_value() for each in (*service.auth.values(), *service.headers.values()))
    for server in settings.mcp.values():
        yield from server.secrets
    for url in (settings.database_url, settings.artifacts_url, settings.archive_url, *settings.connections.values()):
        if url is not None and (password := urlsplit(url).password):
            yield from (password, unquote(password))


def privacy_from(settings: Settings) -> Privacy:
    """How personal data is found. Raises ConfigurationError; may load a language model: not for an event loop."""
    match settings.privacy:
        case "presidio":
            from tools.presidio import presidio_detector

            return Privacy(presidio_detector())
        case "off":
            return Privacy(None)
        case _:
            return BUILT_IN


@asynccontextmanager
async def engine_from(
    settings: Settings, toolkits: Sequence[Toolkit] | Registry | None = None, *, served: bool = False
) -> AsyncIterator[Engine]:
    """An engine as the settings say; what is not there of its tools is a warning of the logger `surestep`. Raises
    ConfigurationError."""
    remember(secrets_in(settings))
    privacy = await asyncio.to_thread(privacy_from, settings)
    keep_logs_clean(privacy)
    await asyncio.to_thread(keep_traces_clean, privacy)
    registry, notices = await asyncio.to_thread(registry_from, settings, toolkits)
    for notice in notices:
        _LOG.warning("%s", notice)
    templates = await asyncio.to_thread(templates_from, settings)
    options = await asyncio.to_thread(options_from, settings, served=served)
    await asyncio.to_thread(schemas.load)
    planner = model_from(settings, settings.model)
    small = model_from(settings, settings.small_model)
    verifier = model_from(settings, settings.verifier_model) if options.checks else None
    opened = open_engine(
        options, registry=registry, templates=templates, planner=planner, small=small, verifier=verifier
    )
    async with opened as engine:
        await Audit(engine.database).settings_used(socket.gethostname(), said_of(settings))
        yield engine


def saver_for(engine: Engine) -> PostgresSaver:
    """LangGraph's checkpoints in the engine's own database; to be entered by `async with`."""
    vault = engine.ports.vault
    return PostgresSaver(engine.database, fences=engine.fences, hiding=Hiding(vault.key) if vault else None)
