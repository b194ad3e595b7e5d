"""A server with faults for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.http.flaky import FlakyServer, flaky_server


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    """A server on this machine that says what its scripts say."""
    with flaky_server() as started:
        yield started
