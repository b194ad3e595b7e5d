"""The statements of runs and approvals, as `checkpoints/queries.sql` has them, on tables in memory."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tests.simulation.server import Answer, LeaseRow, Server, past, statement

RUN_COLUMNS = ("run_id", "thread_id", "tenant", "request_id", "goal", "input_sha256", "status")


@statement
def create_run(server: Server, params: dict[str, Any]) -> Answer:
    """A new run with its lease row; nothing where the tenant's request is known, or the thread has an open run, or one
    of another tenant."""
    is_open = {
        row["thread_id"]
        for row in server.runs.values()
        if row["status"] in ("running", "paused", "limited") or row["tenant"] != params["tenant"]
    }
    if params["thread_id"] in is_open or run_of_request(server, (params["tenant"], params["request_id"])):
        return []
    row = {name: params[name] for name in RUN_COLUMNS} | {"created_at": server.timeline.moment(), "ended_at": None}
    row |= {name: json.loads(params[name]) for name in ("input", "summary")}
    server.runs[row["run_id"]] = row
    server.leases[row["run_id"]] = LeaseRow()
    return [row]


@statement
def run_of_request(server: Server, params: tuple[str, str]) -> Answer:
    """The run that a tenant's request began."""
    return [row for row in server.runs.values() if (row["tenant"], row["request_id"]) == tuple(params)]


@statement
def run_by_id(server: Server, params: tuple[str]) -> Answer:
    """The run of this id."""
    return [server.runs[params[0]]] if params[0] in server.runs else []


@statement
def latest_run(server: Server, params: tuple[str]) -> Answer:
    """The newest run of a thread."""
    return [row for row in _newest_first(server) if row["thread_id"] == params[0]][:1]


@statement
def newest_runs(server: Server, params: dict[str, Any]) -> Answer:
    """The newest runs of a tenant, or of all."""
    rows = [row for row in _newest_first(server) if params["tenant"] in (None, row["tenant"])]
    return rows[: params["limit"]]


@statement
def instructions_of_run(_server: Server, _params: dict[str, Any]) -> Answer:
    """Nobody says anything here."""
    return []


@statement
def tombstone_of_run(_server: Server, _params: tuple[str]) -> Answer:
    """Nothing is archived here."""
    return []


@statement
def tombstone_of_request(_server: Server, _params: tuple[str, str]) -> Answer:
    """Nothing is archived here."""
    return []


@statement
def tombstones_of_thread(_server: Server, _params: tuple[str]) -> Answer:
    """Nothing is archived here."""
    return []


def _newest_first(server: Server) -> Answer:
    return sorted(server.runs.values(), key=lambda row: (row["created_at"], row["run_id"]), reverse=True)


@statement
def set_run_status(server: Server, params: dict[str, Any]) -> Answer:
    """How a run stands, written by its owner."""
    if not server.owns(params["run_id"], params["fence"]):
        return []
    row = server.runs[params["run_id"]]
    row |= {"status": params["status"], "summary": json.loads(params["summary"])}
    row["ended_at"] = server.timeline.moment() if params["ended"] else None
    return [{"run_id": params["run_id"]}]


@statement
def record_approvals(server: Server, params: tuple[str]) -> Answer:
    """New questions; one that was withdrawn is pending again."""
    for request in json.loads(params[0]):
        known = server.approvals.get(request["approval_id"])
        if known is not None and known["status"] != "withdrawn":
            continue
        expires = request.get("expires_at")
        fresh = {
            "request": request,
            "status": "pending",
            "expires_at": datetime.fromisoformat(expires) if expires else None,
        }
        never = {"decision": None, "decided_by": None, "decided_at": None, "created_at": server.timeline.moment()}
        server.approvals[request["approval_id"]] = {**(known or never), **fresh}
        for hear in server.on_asked:
            hear(request)
    return []


@statement
def decide_approvals(server: Server, params: dict[str, Any]) -> Answer:
    """Compare and set, all of them or none. Here nobody has a role or a tenant, and one person is enough."""
    given = json.loads(params["given"])
    waits = [_waits(server, word) for word in given]
    if None in waits:
        return []
    rows = [row for row in waits if row is not None]
    for row, word in zip(rows, given, strict=True):
        row |= {"status": word["status"], "decision": word["decision"], "decided_by": params["by"]}
        row["decided_at"] = server.timeline.moment()
    return [{"request": row["request"], "status": row["status"]} for row in rows]


def _waits(server: Server, word: dict[str, Any]) -> dict[str, Any] | None:
    """The question that a word is about, if it waits, with the arguments that were seen."""
    row = server.approvals.get(word["approval_id"])
    if row is None or row["status"] != "pending" or past(row["expires_at"], server):
        return None
    return row if word["args_sha256"] in (None, row["request"]["args_sha256"]) else None


@statement
def approvals_of_run(server: Server, params: tuple[str]) -> Answer:
    """A run's questions in the order in which they were asked."""
    asked = [(key, row) for key, row in server.approvals.items() if row["request"]["run_id"] == params[0]]
    return [_shown(server, row) for _, row in sorted(asked, key=lambda each: (each[1]["created_at"], each[0]))]


@statement
def approval_by_id(server: Server, params: tuple[str, str]) -> Answer:
    """One question."""
    return [_shown(server, server.approvals[params[0]])] if params[0] in server.approvals else []


@statement
def pending_approvals(server: Server, params: dict[str, Any]) -> Answer:
    """What waits for a person now."""
    rows = sorted(server.approvals.items(), key=lambda each: (each[1]["created_at"], each[0]))
    return [
        {"request": row["request"]}
        for _, row in rows
        if row["status"] == "pending"
        and not past(row["expires_at"], server)
        and params["thread_id"] in (None, row["request"]["thread_id"])
        and params["tenant"] in (None, server.runs[row["request"]["run_id"]]["tenant"])
    ]


@statement
def withdraw_approvals(server: Server, params: dict[str, Any]) -> Answer:
    """Questions that no longer arise."""
    known = [each for each in params["ids"] if each in server.approvals]
    pending = [each for each in known if server.approvals[each]["status"] == "pending"]
    for each in pending:
        server.approvals[each]["status"] = "withdrawn"
    return [{"approval_id": each} for each in pending]


@statement
def withdraw_as_owner(server: Server, params: dict[str, Any]) -> Answer:
    """The same, by who owns the run."""
    owns = server.owns(params["run_id"], params["fence"])
    return withdraw_approvals(server, params) if owns else []


def _shown(server: Server, row: dict[str, Any]) -> dict[str, Any]:
    expired = row["status"] == "pending" and past(row["expires_at"], server)
    names = ("request", "decision", "decided_by", "decided_at", "status")
    return {name: row[name] for name in names} | ({"status": "expired"} if expired else {})
