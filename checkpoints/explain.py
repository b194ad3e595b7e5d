"""What went wrong with the database, in plain words: what was expected, what came, what to do. Never a password."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plans.errors import DatabaseUnavailable

if TYPE_CHECKING:
    import psycopg

OLDEST_SERVER = 140000
"""The oldest PostgreSQL we run on, as libpq counts versions: 14 is the oldest that its makers still care for."""

_NOT_A_URL = (
    "the database URL cannot be read; expected something like postgresql://user:password@host:5432/database "
    "(characters such as @ : / # in a password must be written as %40 %3A %2F %23)"
)
_ADVICE = (
    ("password authentication failed", "the password for user {user!r} is wrong"),
    ("no password supplied", "a password is needed for user {user!r}, and the URL has none"),
    ("does not exist", "the server knows no such database or user (database {dbname!r}, user {user!r})"),
    ("no pg_hba.conf entry", "the server does not let user {user!r} into database {dbname!r} from this machine"),
    ("too many clients", "the server has no connection left to give; raise its max_connections"),
    ("remaining connection slots", "the server has no connection left to give; raise its max_connections"),
    ("Name or service not known", "no machine is called {host!r}"),
    ("could not translate host name", "no machine is called {host!r}"),
    ("failed to resolve host", "no machine is called {host!r}"),
    ("Connection refused", "nothing listens there; is PostgreSQL running?"),
    ("No such file or directory", "no server has its socket there; is PostgreSQL running?"),
    ("couldn't get a connection", "no connection could be made, or became free, in time"),
    ("timeout", "nothing answered in time; is the host right, and reachable from here?"),
    ("SSL", "the two sides do not agree on encryption; see sslmode in the URL"),
    ("starting up", "the server is starting up; try again in a moment"),
    ("shutting down", "the server is shutting down"),
)
NO_TEXT = "a name or a text holds U+0000 or half a character, which no database can hold; leave that out"
_SAYING_NOTHING = ("Multiple connection attempts", "Is the server running")


def check_url(url: str) -> None:
    """Refuse what cannot be meant as a URL, without repeating it.

    A password with an unescaped @ or / ends up in the host, port or database that libpq reads, and so in its messages.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        read = conninfo_to_dict(url)
    except ProgrammingError:
        raise DatabaseUnavailable(_NOT_A_URL) from None
    ports = str(read.get("port") or "0").split(",")
    host, database = str(read.get("host", "")), str(read.get("dbname", ""))
    torn = "@" in database or ("@" in host and not host.startswith("/"))
    if not url.strip() or torn or not all(port.isdecimal() for port in ports):
        raise DatabaseUnavailable(_NOT_A_URL)


def check_version(server_version: int) -> None:
    """Refuse a server that is too old, given its version as libpq counts it (90624, 130005, 180004)."""
    if server_version < OLDEST_SERVER:
        major, minor = divmod(server_version, 10_000)
        found = f"{major}.{minor // 100}" if major < 10 else str(major)
        raise DatabaseUnavailable(f"PostgreSQL {OLDEST_SERVER // 10_000} or newer is needed; this server is {found}")


def is_no_text(error: psycopg.DataError | UnicodeEncodeError) -> bool:
    """Whether a parameter was a text that cannot be sent. The server has not seen it then, and has no code for it."""
    return isinstance(error, UnicodeEncodeError) or (error.sqlstate is None and "NUL" in str(error))


def unreachable(url: str, error: Exception) -> DatabaseUnavailable:
    """Why no connection could be made to `url`."""
    asked = _asked(url)
    words = _clean(str(error), asked)
    for mark, advice in _ADVICE:
        if mark in str(error):
            return DatabaseUnavailable(f"cannot connect to {_place(asked)}: {advice.format(**asked)} ({words})")
    return DatabaseUnavailable(f"cannot connect to {_place(asked)}: {words or type(error).__name__}")


def not_permitted(url: str, error: psycopg.Error) -> DatabaseUnavailable:
    """Why the tables could not be made in the database at `url`."""
    asked = _asked(url)
    return DatabaseUnavailable(
        f"user {asked['user']!r} may not make Surestep's tables in database {asked['dbname']!r} "
        f"({_clean(error.diag.message_primary or str(error), asked)}); the owner of the database can allow it: "
        f'GRANT CREATE ON DATABASE "{asked["dbname"]}" TO "{asked["user"]}"; '
        f'GRANT CREATE, USAGE ON SCHEMA public TO "{asked["user"]}"'
    )


def _asked(url: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    user = given.get("user", "")
    return {"user": user, "dbname": given.get("dbname", user), "host": given.get("host", "")} | given


def _place(asked: dict[str, str]) -> str:
    host = asked["host"] or "the local socket"
    port = f":{asked['port']}" if "port" in asked and not host.startswith("/") else ""
    return f"PostgreSQL at {host}{port}, database {asked['dbname']!r}"


def _clean(words: str, asked: dict[str, str]) -> str:
    """The last line of the server's words that says something, without the password should it stand in it."""
    lines = [line.strip(" \t-") for line in words.splitlines()]
    told = next((line for line in reversed(lines) if line and not line.startswith(_SAYING_NOTHING)), "")
    secret = asked.get("password")
    return told.replace(secret, "***") if secret else told
