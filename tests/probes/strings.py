"""What is put where a name, an id or a file is expected: pieces of SQL and paths, wildcards, bytes that end a text."""

from __future__ import annotations

HOSTILE: tuple[str, ...] = (
    "'; DROP TABLE surestep.journal; --",
    "' OR '1'='1",
    '" OR ""="',
    "t1'); DELETE FROM surestep.runs; SELECT ('",
    "$$; DELETE FROM surestep.runs; $$",
    "1 UNION SELECT body FROM surestep.journal",
    "%",
    "%(thread_id)s",
    "_____",
    "*",
    "theirs\\",
    "\\x27",
    "theirs%00",
    "theirs;",
    "theirs\0",
    "{theirs}",
    "${secrets.KEY}",
    "theirs\nmine",
    "theirs\r\n",
    "..",
    "../canary",
    "../../../../no-such-folder/canary",
    "/no-such-folder/canary",
    "file:///no-such-folder/canary",
    "link",
    "~nobody-is-called-so/canary",
    "\uff0e\uff0e\uff0fcanary",
    "th\u0435irs",
    "theirs\u200b",
    "\u202etxt.sriehT",
    "theirs\ud800",
    "a" * 5_000,
    "1e400",
    "-1",
    "",
)
"""`theirs` is the id of somebody else's thread, `link` a symbolic link to the file `canary`, which nobody may read. No
text here names a file of the machine: some commands write where they are told to, and would, whoever runs the tests."""
WORST = tuple(HOSTILE[place] for place in (0, 6, 14, 20, 24, 30, 31))
"""Of each kind one: what is tried at every change of the code; all are tried by the slow tests."""
OF_THE_MACHINE = frozenset(value for value in HOSTILE if "/etc/" in value or value.startswith("~root"))
"""Names of real files of this machine. A command that may write a file of its caller's would overwrite them: whoever
runs the tests as root would lose the machine's accounts."""
