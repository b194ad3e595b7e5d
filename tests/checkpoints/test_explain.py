"""Versions and words: what a server must be, and what is said of it."""

from __future__ import annotations

import pytest

from checkpoints.explain import check_url, check_version, unreachable
from plans.errors import DatabaseUnavailable


@pytest.mark.parametrize(("number", "found"), [(90624, "9.6"), (130005, "13"), (100023, "10")])
def test_a_server_that_is_too_old_is_refused_with_both_versions(number: int, found: str) -> None:
    """The message says what is needed and what is there, in the numbers people use."""
    with pytest.raises(DatabaseUnavailable, match=f"PostgreSQL 14 or newer is needed; this server is {found}$"):
        check_version(number)


@pytest.mark.parametrize("number", [140000, 160002, 180004])
def test_a_server_that_is_new_enough_passes(number: int) -> None:
    """14 and everything after it."""
    check_version(number)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p%40ss@h:5432/d",
        "postgres://u@h/d",
        "postgresql://u@/d?host=/some/folder@home",
        "postgresql://u@h1:1,h2:2/d?target_session_attrs=read-write",
        "host=h dbname=d user=u",
    ],
)
def test_every_form_libpq_takes_is_taken(url: str) -> None:
    """URLs of both schemes, sockets, several hosts, and the form with keywords."""
    check_url(url)


def test_a_password_that_a_message_repeats_is_struck_out() -> None:
    """Whatever a library says, the password in it is replaced."""
    error = unreachable("postgresql://u:hunter22@h/d", ValueError("cannot use hunter22 here"))
    assert "hunter22" not in str(error)
    assert "***" in str(error)


def test_what_nobody_foresaw_is_said_in_the_servers_words() -> None:
    """A trouble without a sentence of ours keeps the place and the server's own words, without empty phrases."""
    words = "Multiple connection attempts failed. All failures were:\n- something odd\n\tIs the server running?"
    assert str(unreachable("postgresql://u@h:1/d", ValueError(words))) == (
        "cannot connect to PostgreSQL at h:1, database 'd': something odd"
    )
