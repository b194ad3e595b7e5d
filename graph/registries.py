"""From settings to tools and templates. Loads no LangGraph: looking and judging need none."""

from __future__ import annotations

from collections.abc import Sequence

from graph.settings import Settings
from nodes.templates import Template, load_templates
from plans.errors import ConfigurationError
from tools.http.hosts import Hosts, private_addresses
from tools.http.toolkit import http_toolkit
from tools.loading import load_toolkit
from tools.mcp import McpToolkit
from tools.openapi import OpenApiToolkit, Service
from tools.person import person
from tools.registry import Registry, Toolkit, combine

BUILT_IN = ("tools.person:person", "tools.tabular:tabular", "tools.orders:orders", "tools.python:python")


def registry_from(
    settings: Settings, toolkits: Sequence[Toolkit] | Registry | None = None
) -> tuple[Registry, list[str]]:
    """The tools of a process, and what to tell about those that are not there. A registry is its own. Waits for servers
    that tools come from: not for an event loop. Raises ToolkitNotLoadable."""
    if isinstance(toolkits, Registry):
        return toolkits, []
    if toolkits is not None:
        return combine([person], toolkits)
    own = [load_toolkit(reference) for reference in dict.fromkeys(settings.toolkits)]
    return combine(built_in(settings), [*own, *outside(settings)])


def built_in(settings: Settings) -> list[Toolkit]:
    """The toolkits that everybody has, as they are set up here."""
    http = http_toolkit(
        settings.http_hosts,
        settings.http_private_hosts,
        most_bytes=settings.http_max_bytes,
        certificates=settings.http_certificates,
    )
    return [*(load_toolkit(reference) for reference in BUILT_IN), http]


def outside(settings: Settings) -> list[Toolkit]:
    """The toolkits that the settings file describes; their tools are found when a registry is made."""
    servers = [McpToolkit(name, server) for name, server in settings.mcp.items()]
    services, faults = list[Toolkit](), list[str]()
    for name, service in settings.openapi.items():
        try:
            services.append(_of_document(name, service, settings))
        except ConfigurationError as fault:
            faults.append(f"openapi.{name}: {fault}")
    if faults:
        raise ConfigurationError("; ".join(faults))
    return [*servers, *services]


def _of_document(name: str, service: Service, settings: Settings) -> Toolkit:
    return OpenApiToolkit(
        name,
        service,
        Hosts(private=private_addresses(settings.http_private_hosts)),
        certificates=settings.http_certificates,
        most_bytes=settings.http_max_bytes,
    )


def templates_from(settings: Settings) -> Sequence[Template]:
    """The shipped templates, and those of the user's folder before them, of whatever tenant."""
    return load_templates(settings.templates)
