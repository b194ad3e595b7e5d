"""Fixtures of the nodes' tests: a scripted model on a real local server, and our door to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pytest_httpserver import HTTPServer

from nodes.model_settings import ModelSettings
from nodes.models import Model
from tests.nodes.model_server import ScriptedModel


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> ScriptedModel:
    """A model endpoint that answers as the test says."""
    return ScriptedModel(httpserver)


@pytest.fixture
async def model(endpoint: ScriptedModel) -> AsyncIterator[Model]:
    """Our door to that endpoint, with short waits."""
    settings = ModelSettings("scripted", endpoint.base_url, "key-1", timeout_s=20.0, backoff_s=0.01)
    async with Model(settings) as opened:
        yield opened
