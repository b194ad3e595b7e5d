"""Fixtures of the probes: the command line in a project of its own, beside somebody else's thread and file."""

from __future__ import annotations

from tests.graph.conftest import agent_on, endpoint, project, surestep

__all__ = ["agent_on", "endpoint", "project", "surestep"]
