"""The statements of journal, leases and artifacts, as `checkpoints/queries.sql` has them, on tables in memory."""

from __future__ import annotations

import json
from typing import Any

from tests.simulation.server import Answer, LeaseRow, Server, past, statement

COLUMNS = ("run_id", "fence", "n", "kind", "step_id", "attempt", "body")


@statement
def append_rows(server: Server, params: dict[str, Any]) -> Answer:
    """Rows of many runs: each accepted, stale or a clash; small artifacts with them."""
    columns = [params[name] for name in COLUMNS]
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]
    held = {(run_id, lease.fence) for run_id, lease in server.leases.items() if lease.owner is not None}
    _store_artifacts(server, params, held)
    return [_appended(server, row, (row["run_id"], row["fence"]) in held) for row in rows]


def _appended(server: Server, row: dict[str, Any], is_held: bool) -> dict[str, Any]:
    verdict = server.add_row({**row, "body": json.loads(row["body"])}) if is_held else "stale"
    flag = is_held and server.leases[row["run_id"]].cancel_requested
    return {"run_id": row["run_id"], "fence": row["fence"], "n": row["n"], "cancel_requested": flag, "verdict": verdict}


def _store_artifacts(server: Server, params: dict[str, Any], held: set[tuple[str, int]]) -> None:
    names = ("run_id", "fence", "output_ref", "sha256", "media_type", "content")
    columns = [params[f"artifact_{name}"] for name in names]
    for run_id, fence, output_ref, sha256, media_type, content in zip(*columns, strict=True):
        if (run_id, fence) in held:
            _store(server, run_id, output_ref, sha256, media_type, content)


def _store(server: Server, run_id: str, output_ref: str, sha256: str, media_type: str, body: bytes | None) -> None:
    row = {"sha256": sha256, "media_type": media_type, "body": body}
    server.artifacts.setdefault((run_id, output_ref), row)


@statement
def append_row(server: Server, params: dict[str, Any]) -> Answer:
    """One row in somebody else's transaction; no row comes back when the fence is stale or the number taken."""
    if not server.owns(params["run_id"], params["fence"]):
        return []
    row = {name: params[name] for name in COLUMNS}
    if server.add_row({**row, "body": json.loads(row["body"])}) != "accepted":
        return []
    if params["output_ref"] is not None:
        named = [params[name] for name in ("run_id", "output_ref", "sha256", "media_type", "content")]
        _store(server, *named)
    return [{"n": params["n"]}]


@statement
def read_journal(server: Server, params: tuple[str]) -> Answer:
    """All rows of a run, by fence, then by number."""
    return server.rows_of(params[0])


@statement
def find_row(server: Server, params: tuple[str, int, int]) -> Answer:
    """One row by its identity."""
    found = server.journal.get(params[0], {}).get((params[1], params[2]))
    return [found] if found else []


@statement
def lock_lease(server: Server, params: tuple[str]) -> Answer:
    """Waits for nobody here: every transaction that ends a step does so in one instant."""
    lease = server.leases.get(params[0])
    return [{"fence": lease.fence}] if lease else []


@statement
def record_artifact(server: Server, params: dict[str, Any]) -> Answer:
    """What is known of a result, and its bytes where they are few."""
    _store(server, *[params[name] for name in ("run_id", "output_ref", "sha256", "media_type", "body")])
    return []


@statement
def artifact(server: Server, params: tuple[str, str]) -> Answer:
    """A result's hash, and its bytes where they are few."""
    found = server.artifacts.get((params[0], params[1]))
    return [{"sha256": found["sha256"], "body": found["body"]}] if found else []


@statement
def artifacts_among(server: Server, params: tuple[str, list[str]]) -> Answer:
    """Which of these results are there."""
    return [{"output_ref": each} for each in params[1] if (params[0], each) in server.artifacts]


@statement
def acquire_lease(server: Server, params: dict[str, Any]) -> Answer:
    """Taken where it has no owner, has expired, is this session's own, or its session is gone."""
    lease = server.leases.get(params["run_id"])
    if lease is None or not _free(server, lease, params):
        return []
    before = lease.owner
    lease.fence += 1
    lease.owner, lease.backend_pid = params["owner"], params["backend_pid"]
    lease.backend_start, lease.expires_at = params["backend_start"], server.after(params["length_s"])
    times = {"expires_at": lease.expires_at.timestamp(), "taken_at": server.timeline.wall()}
    return [{"fence": lease.fence, "cancel_requested": lease.cancel_requested, "taken_from": before, **times}]


def _free(server: Server, lease: LeaseRow, params: dict[str, Any]) -> bool:
    if lease.owner is None or past(lease.expires_at, server):
        return True
    return lease.backend_pid == params["backend_pid"] or lease.backend_pid not in server.sessions


@statement
def lease_state(server: Server, params: dict[str, Any]) -> Answer:
    """Who owns a run, and for how many seconds more."""
    lease = server.leases.get(params["run_id"])
    if lease is None:
        return []
    left = None if lease.expires_at is None else (lease.expires_at - server.timeline.moment()).total_seconds()
    # No operating system is here that could tell whether a worker is dead.
    return [{"owner": lease.owner, "worker": None, "left_s": left, "cancel_requested": lease.cancel_requested}]


@statement
def renew_leases(server: Server, params: dict[str, Any]) -> Answer:
    """Those that are still this owner's."""
    renewed = []
    for run_id, fence in zip(params["run_id"], params["fence"], strict=True):
        if server.owns(run_id, fence):
            lease = server.leases[run_id]
            lease.expires_at = server.after(params["length_s"])
            lease.backend_pid, lease.backend_start = params["backend_pid"], params["backend_start"]
            answer = {"cancel_requested": lease.cancel_requested, "expires_at": lease.expires_at.timestamp()}
            renewed.append({"run_id": run_id, "fence": fence, **answer})
    return renewed


@statement
def release_lease(server: Server, params: dict[str, Any]) -> Answer:
    """Let go of, unless one of the approvals that are waited for is decided, or has expired."""
    if not server.owns(params["run_id"], params["fence"]):
        return []
    listed = [server.approvals[each] for each in params["unless_decided"] if each in server.approvals]
    released = all(row["status"] == "pending" and not past(row["expires_at"], server) for row in listed)
    if released:
        lease = server.leases[params["run_id"]]
        lease.owner = lease.backend_pid = lease.backend_start = lease.expires_at = None
    return [{"released": released}]


@statement
def request_cancel(server: Server, params: dict[str, Any]) -> Answer:
    """The flag, and a word to whoever listens."""
    lease = server.leases.get(params["run_id"])
    if lease is None:
        return []
    lease.cancel_requested = True
    for tell in server.sessions.values():
        tell(params["run_id"])
    alive = lease.expires_at is not None and not past(lease.expires_at, server)
    return [{"owner": lease.owner if alive else None}]
