"""Traces without personal data and credentials: LangSmith's client is given what cleans inputs, outputs and errors.

Nothing is traced unless the process's environment asks LangSmith's libraries for it.
"""

from __future__ import annotations

from typing import Any

from tools.privacy import Privacy

_WHERE = "_anonymizer"
"""Where LangSmith's client keeps it; there is no other way to one that a program or a server has made before us."""


class Cleaning:
    """Cleans after what the client's maker wants cleaned."""

    def __init__(self, privacy: Privacy, before: Any = None) -> None:
        self.privacy = privacy
        self._before = before

    def __call__(self, shown: dict[str, Any]) -> dict[str, Any]:
        """Inputs, outputs, an error or metadata of a run, as JSON."""
        cleaned: dict[str, Any] = self.privacy.value(self._before(shown) if self._before is not None else shown)
        return cleaned


def keep_traces_clean(privacy: Privacy) -> None:
    """From here on, where runs are traced. Imports LangSmith only where they are: not for an event loop."""
    from langsmith import utils

    if utils.tracing_is_enabled():
        from langsmith.run_trees import get_cached_client

        client = get_cached_client()
        before = getattr(client, _WHERE)
        if isinstance(before, Cleaning):
            before.privacy = privacy
        else:
            setattr(client, _WHERE, Cleaning(privacy, before))
