"""From settings to tools and templates. Loads no LangGraph: looking and judging need none."""

from __future__ import annotations

from collections.abc import Sequence

from graph.settings import Settings
from nodes.templates import Template, load_templates
from tools.loading import load_toolkit
from tools.registry import Registry, Toolkit, combine

BUILT_IN = ("tools.tabular:tabular", "tools.orders:orders")


def registry_from(settings: Settings, toolkits: Sequence[Toolkit] | None = None) -> tuple[Registry, list[str]]:
    """The tools of a process, and what to tell about toolkits that were left out. Raises ToolkitNotLoadable."""
    if toolkits is not None:
        return Registry.of(*toolkits), []
    own = [load_toolkit(reference) for reference in dict.fromkeys(settings.toolkits)]
    return combine([load_toolkit(reference) for reference in BUILT_IN], own)


def templates_from(settings: Settings) -> Sequence[Template]:
    """The shipped templates, and those of the user's folder before them."""
    return load_templates(settings.templates)
