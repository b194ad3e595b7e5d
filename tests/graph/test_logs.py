"""What is logged holds neither credentials nor personal data; what others log is theirs, save for known secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from graph.logs import CleanRecords, keep_logs_clean
from tools import redaction
from tools.privacy import BUILT_IN
from tools.redaction import lent, remember

SECRET = "known-9secret"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every line that is logged, as it would be written."""
    monkeypatch.setattr(redaction, "_known", {})
    found, before = list[str](), logging.getLogRecordFactory()

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    kept = Keeping()
    logging.getLogger().addHandler(kept)
    keep_logs_clean()
    keep_logs_clean()
    yield found
    logging.getLogger().removeHandler(kept)
    logging.setLogRecordFactory(before)


def test_our_records_are_clean_in_message_arguments_and_traceback(lines: list[str]) -> None:
    """Whatever a record is made of."""
    log = logging.getLogger("tools.somewhere")
    log.warning("password=%s of %s", "hunter2x", "ann@x.example")
    try:
        raise ValueError("postgresql://app:hunter2x@db for ann@x.example")
    except ValueError:
        log.exception("it failed")
    log.warning({"event": "token: hunter2x", "count": 3})
    written = "\n".join(lines)
    assert "hunter2x" not in written
    assert "ann@x.example" not in written
    assert "password=*** of [e-mail]" in written
    assert "ValueError: postgresql://***@db" in written
    assert "'count': 3" in written


def test_records_of_others_lose_known_secrets_alone(lines: list[str]) -> None:
    """Those of the settings for good, one that a call was given while it lasts; never a word that is too plain."""
    remember([SECRET, "postgres", "abc"])
    log = logging.getLogger("somebody.else")
    log.warning("ann@x.example said %s to postgres abc", SECRET)
    with lent(["lent-7secret"]):
        log.warning("lent-7secret")
    log.warning("lent-7secret")
    assert lines == ["ann@x.example said *** to postgres abc", "***", "lent-7secret"]


def test_a_record_that_is_made_of_another_has_no_name_yet() -> None:
    """`logging.makeLogRecord`, by which structlog formats, asks the factory for a record without a name."""
    made = CleanRecords(logging.LogRecord, BUILT_IN)(None, None, "", 0, "hello %s", ("you",), None, None)
    assert made.getMessage() == "hello you"
