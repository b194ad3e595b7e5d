"""Records of logs, as they are made."""

from __future__ import annotations

import logging

from graph.logs import CleanRecords
from tools.privacy import BUILT_IN


def test_a_record_that_is_made_of_another_has_no_name_yet() -> None:
    """`logging.makeLogRecord`, by which structlog formats, asks the factory for a record without a name."""
    made = CleanRecords(logging.LogRecord, BUILT_IN)(None, None, "", 0, "hello %s", ("you",), None, None)
    assert made.getMessage() == "hello you"
