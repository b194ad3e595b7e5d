"""Fixtures of the cases: a scripted model on a real local server."""

from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from tests.nodes.model_server import ScriptedModel


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> ScriptedModel:
    """A model endpoint that answers as the test says."""
    return ScriptedModel(httpserver)
