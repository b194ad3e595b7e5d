"""A request whose run is in the archive: the graph goes straight to its end, and gives the answer that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from nodes.fold import fold_journal
from plans.errors import ArtifactMissing, SurestepError
from plans.failure import Failure

if TYPE_CHECKING:
    from checkpoints.archive_reading import ArchiveReader
    from checkpoints.tombstones import Tombstone

EDGES = {"validate": "give_up"}
"""The edge by which a node leads to the end; the others have `finish`, or but one way to go."""


class Archived(SurestepError):
    """The run cannot be driven: it has ended, and is in the archive."""

    def __init__(self, stone: Tombstone) -> None:
        super().__init__(f"run {stone.run_id} has ended ({stone.status}) and is in the archive: {stone.location}")
        self.stone = stone


async def stored_answer(
    node: str, state: Mapping[str, Any], stone: Tombstone, archives: ArchiveReader
) -> dict[str, Any]:
    """What a node changes in the state on the way to the end of a run that has ended long ago.

    The status says that it has ended only when the end is reached, so that each node on the way knows whose it is.
    ArtifactMissing when the archive is gone or the run was erased.
    """
    if stone.erased_at is not None:
        raise ArtifactMissing(f"this request was made before, and {stone.epitaph}; choose another request id")
    if node not in ("plan", "finish"):
        return {"edge": EDGES.get(node, "finish")}
    picture = fold_journal(await archives.rows(stone))
    if node == "plan":
        return {"run": picture.head, "current_plan": picture.plan}
    ended = picture.finished or {"answer": None, "report_ref": None, "failures": ()}
    failures = [Failure.model_validate(failure) for failure in ended["failures"]]
    update = {name: ended.get(name) for name in ("answer", "report_ref", "missing")} | {
        "status": stone.status,
        "failures": failures,
    }
    if state.get("messages"):
        update["messages"] = [AIMessage(ended["answer"] or "", id=f"{stone.run_id}-answer")]
    return {**update, "usage": picture.usage}
