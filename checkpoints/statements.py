"""What a tool's SQL may be: one statement that reads or writes rows, and never one that changes the transaction."""

from __future__ import annotations

import re

from plans.failure import ToolFailure

ROWS = frozenset({"select", "with", "values", "table", "insert", "update", "delete", "merge", "explain", "show"})
"""First words of the statements that read or write rows; with them goes only what can be undone."""

CONTROL = frozenset(
    {
        "abort", "begin", "checkpoint", "close", "commit", "copy", "deallocate", "declare", "discard", "do", "end",
        "execute", "fetch", "listen", "load", "lock", "move", "prepare", "release", "reset", "rollback", "savepoint",
        "set", "start", "unlisten",
    }
)  # fmt: skip
"""First words of the statements that act on the transaction, the session or the server's files."""

_BLANK = re.compile(r"[\s(;]+|--[^\n]*")
_WORD = re.compile(r"[A-Za-z]+")
_SETTING = re.compile(r"\bset_config\s*\(", re.IGNORECASE)


def first_word(sql: str) -> str:
    """The word that says what a statement does, in lower case; "" when there is none. Comments may nest."""
    place = 0
    while place < len(sql):
        if sql.startswith("/*", place):
            place = _after_comment(sql, place)
        elif blank := _BLANK.match(sql, place):
            place = blank.end()
        else:
            break
    word = _WORD.match(sql, place)
    return word[0].lower() if word else ""


def require_rows(sql: str) -> None:
    """Refuse what does anything but read or write rows: the transaction is Surestep's to end, not the tool's."""
    word = first_word(sql)
    if word not in ROWS or _SETTING.search(sql):
        raise ToolFailure("NOT_PERMITTED", f"{_called(sql, word)} is refused here; expected one of {_listed(ROWS)}")


def refuse_control(sql: str) -> None:
    """Refuse what acts on the transaction or the session of a connection that is lent for one statement."""
    word = first_word(sql)
    if word in CONTROL or not word or _SETTING.search(sql):
        raise ToolFailure("NOT_PERMITTED", f"{_called(sql, word)} is refused: each statement commits by itself here")


def _after_comment(sql: str, place: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", sql[place:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return place + mark.end()
    return len(sql)


def _called(sql: str, word: str) -> str:
    if _SETTING.search(sql):
        return "set_config()"
    return word.upper() if word else f"the statement {sql[:40]!r}"


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words)).upper()
