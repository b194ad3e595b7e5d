"""Which tables are audited, and how their rows are found again: what a trigger hashes is named here for who verifies.

To have one more table audited: a line `SELECT surestep.audit_table(…)` in the migration that makes it, a query in
`queries.sql` that gives `chain`, `key` and `content` of its rows, and a line here. What stands in no table is one call
of `surestep.audit_note(chain, kind, subject, told)` in the statement that does it, or of `Audit.note`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Audited:
    """A table of which every version of every row has an entry, of the kind `what.…`. `query` gives its rows of some
    chains. One that is `kept` has all its rows for good; of the others they go with their run."""

    what: str
    table: str
    query: str
    kept: bool = False


TABLES = (
    Audited("journal", "journal", "audited_journal"),
    Audited("run", "runs", "audited_runs"),
    Audited("approval", "approvals", "audited_approvals"),
    Audited("decision", "decisions", "audited_decisions"),
    Audited("instruction", "instructions", "audited_instructions"),
    Audited("tombstone", "tombstones", "audited_tombstones", kept=True),
    Audited("setting", "tool_changes", "audited_settings", kept=True),
)
"""All of them. Of the journal, whose rows never change, each has exactly one entry."""
