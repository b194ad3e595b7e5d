"""What a tool's trouble with PostgreSQL means for its run, in the codes every failure has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plans.failure import ToolFailure

_FAILURES = {
    "57014": ("TIMEOUT", "the statement was cancelled by the server"),
    "25P03": ("TIMEOUT", "the tool left its transaction waiting too long, and the server ended it"),
    "40001": ("CONFLICT", "another transaction changed the same rows"),
    "40P01": ("CONFLICT", "two transactions waited for each other"),
    "55P03": ("CONFLICT", "another transaction holds the rows"),
    "25006": ("NOT_PERMITTED", "this connection only reads, and the statement writes"),
    "42501": ("NOT_PERMITTED", "the database user has no permission for the statement"),
}
_TOO_MANY = "multiple commands"


def connection_lost(error: Exception) -> bool:
    """Whether the server, or the way to it, was gone: nothing is known about the statement that was under way."""
    from psycopg import OperationalError

    return isinstance(error, OperationalError) and (
        error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))  # as in 57P01, admin_shutdown
    )


@contextmanager
def as_tool_failure(*, may_have_happened: bool) -> Iterator[None]:
    """Turn the database errors that a run can act on into failures; any other is the tool's own and passes.

    `may_have_happened` says that a statement sent over a connection that was lost may have taken effect.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        if connection_lost(error):
            if may_have_happened:
                message = "the connection was lost during the statement; whether it took effect is not known"
                raise ToolFailure("UNKNOWN_OUTCOME", message) from error
            raise ToolFailure("UNAVAILABLE", "the database is not available") from error
        if error.sqlstate in _FAILURES:
            code, message = _FAILURES[error.sqlstate]
            raise ToolFailure(code, message) from error
        if error.sqlstate == "42601" and _TOO_MANY in str(error):
            raise ToolFailure("NOT_PERMITTED", "only one statement at a time is allowed") from error
        raise
