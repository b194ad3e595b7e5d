"""Names for new runs and threads, and for the trace of a run. Loads nothing, so that a command can name its thread
before it does anything."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from uuid import uuid4


def new_id() -> str:
    """An id that sorts by time and can be read aloud: 20261129-171530-1f0c9a2b."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"


def trace_id_of(run_id: str) -> str:
    """The trace that all of a run belongs to, whoever drives it and however often: 32 hex digits, as W3C traces have
    them, made of the run's id alone."""
    return sha256(f"surestep run {run_id}".encode()).hexdigest()[:32]
