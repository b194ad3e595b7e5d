"""Names for new runs and threads. Loads nothing, so that a command can name its thread before it does anything."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4


def new_id() -> str:
    """An id that sorts by time and can be read aloud: 20261129-171530-1f0c9a2b."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"
