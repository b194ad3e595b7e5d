"""The commit points of the engine by name: where a process can die, and what is durable there and what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

POINTS: Mapping[str, str] = MappingProxyType(
    {
        "run.created": "The request, its run and its lease row are stored; there is no owner and no checkpoint.",
        "run.status_set": "The run's status is stored, and the journal says why; the caller has not been told.",
        "lease.acquired": "The fence is raised and committed; this owner has not read the journal.",
        "lease.renewed": "The lease counts from a later moment in the database; this process does not know it.",
        "lease.before_release": "All that this owner knows is durable; it still holds the run.",
        "lease.released": "The run has no owner, unless an approval it waited for was decided; nobody was told.",
        "journal.before_batch": "Rows are queued and their large artifacts stored; none of the rows is.",
        "journal.batch_committed": "The rows and their small artifacts are stored; nobody was told, and nothing "
        "that waits for them has started.",
        "artifact.before_write": "A large result is in memory only.",
        "artifact.unnamed": "A large result's bytes are on the disk under a name that nobody reads.",
        "artifact.written": "A large result's file is durable; no row knows of it.",
        "artifact.recorded": "An artifact is durable and recorded; the journal row that names it is not queued.",
        "effect.intended": "The intent is accepted; the call has not been made.",
        "effect.returned": "The effect has happened, or its call has failed; its outcome is not queued.",
        "transaction.before_commit": "A tool's writes and their outcome row are in the open transaction; neither is "
        "real.",
        "transaction.committed": "A tool's writes and their outcome row are stored; nobody was told.",
        "checkpoint.before_put": "What the node decided is in the journal; the checkpoint after it is not stored.",
        "checkpoint.stored": "A checkpoint is stored; LangGraph was not told.",
        "checkpoint.before_writes": "What the node decided is in the journal; its writes are not stored.",
        "checkpoint.writes_stored": "A node's writes are stored as pending; the checkpoint after them is not.",
        "node.flushed": "All rows of a node are accepted; no checkpoint knows of the node.",
        "plan.queued": "A plan's revision is queued for the journal; questions it has outdated are still asked.",
        "expansion.accepted": "A for_each step's elements are in the journal; none of its children has started.",
        "model.answered": "The model has answered; its answer is not in the journal.",
        "check.queued": "Whether the plan still holds is queued for the journal; what waits for it has not begun.",
        "approval.before_record": "What a question rests on is accepted; the question is not stored.",
        "approval.recorded": "The question is in the table where people find it; the journal does not know it.",
        "approval.before_decision": "A person has answered; the answer is not stored.",
        "approval.decided": "The answer is stored in the table; the journal does not know it.",
        "approval.before_withdrawal": "Questions no longer arise; the table still asks them.",
        "approval.withdrawn": "The table does not ask them any more.",
        "pause.recorded": "The journal and the run's status say paused; this owner still holds the run.",
        "finish.recorded": "The journal says how the run has ended; its status does not.",
        "session.closing": "A drive ends; what is in flight is not settled, and rows may be queued.",
    }
)
"""The points that a run comes to: what is durable before each, and what is not."""

KEEPING: Mapping[str, str] = MappingProxyType(
    {
        "archive.begun": "It is stored where a run's archive will be; no file of it is written.",
        "archive.file_written": "Some files of a run's archive are durable; no manifest says that they are all.",
        "archive.manifest_written": "A run's archive is whole and durable; its rows are still in the database.",
        "archive.rows_deleted": "A run is in the archive alone; the files of its results are left.",
        "archive.thread_trimmed": "A thread has its latest checkpoint only; others have their history.",
        "archive.file_deleted": "A file of a result that nothing refers to is deleted; it is still listed.",
        "erasure.archives_deleted": "What was archived of a thread is deleted; its rows are there.",
        "erasure.rows_deleted": "Tombstones alone are left in the database; files of results are still there.",
    }
)
"""The points that an archive and an erasure come to."""

SWEEPING: Mapping[str, str] = MappingProxyType(
    {
        "sweep.expired": "Questions that nobody answered in time are stored as expired; their runs stand still.",
        "sweep.claimed": "A run that nobody drives is this sweeper's to resume for a while; nothing of it goes on.",
        "sweep.resumed": "The run has gone on and stands still again; the sweeper has not written that down.",
        "outbox.claimed": "Events are this sweeper's to deliver for a while; nothing was sent.",
        "outbox.sent": "The receiver has taken an event; that is not stored.",
    }
)
"""The points that a sweep comes to."""

SAYING: Mapping[str, str] = MappingProxyType(
    {
        "instruction.before_send": "Somebody says something to a run; it is not stored.",
        "instruction.sent": "What was said to a run is stored; nobody who drives it knows of it.",
        "instruction.taken": "What was said stands in the run's journal, and in the mailbox as taken.",
    }
)
"""The points that a word to a run comes to."""

hook: Callable[[str], None] | None = None
"""Called with the name of each point that is reached; set only by the tests' child processes."""


def reached(name: str) -> None:
    """The process is at this commit point. Costs nothing in production, where nobody listens."""
    if hook is not None:
        hook(name)
