"""The files of one archived run: what is in them, how they are named, and how they are read again.

A run is a folder, `date=2026-11-29/thread=t1/run=…` by the day (UTC) on which it ended:

    run.json          the request, how the run ended, its times, its result as a program gets it, and its usage
    plans.jsonl       every revision of the plan
    journal.jsonl     every row of the journal, in order
    approvals.jsonl   what people were asked, and what they said
    artifacts.jsonl   what is known of each artifact
    artifacts/NAME    the bytes of each artifact, by its output_ref
    manifest.json     the size and the SHA-256 of each of these; written last, so that a folder that has it is whole
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from checkpoints.places import Place
from checkpoints.rows import Row
from checkpoints.runs import RunRecord
from plans.errors import ArtifactMissing, Unreadable, VersionTooNew
from plans.values import JSON

FORMAT_VERSION = 1
"""How these files are laid out. Files of a newer version are refused."""

MANIFEST = "manifest.json"
_LONGEST_NAME = 120


def folder_of(record: RunRecord) -> str:
    """The folder of a run that has ended: the same whenever it is asked for."""
    ended = (record.ended_at or record.created_at or datetime.fromtimestamp(0, UTC)).astimezone(UTC)
    return f"date={ended:%Y-%m-%d}/thread={_quoted(record.thread_id)}/run={_quoted(record.run_id)}"


def artifact_path(output_ref: str) -> str:
    """Where the bytes of an artifact are in its run's folder."""
    return f"artifacts/{_quoted(output_ref)}"


def run_file(record: RunRecord, result: Mapping[str, JSON]) -> bytes:
    """`run.json`. It holds nothing that differs from one archive of the run to the next."""
    outcome = dict(result)
    usage = outcome.pop("usage", {})
    told = {
        "format_version": FORMAT_VERSION,
        "run_id": record.run_id,
        "thread_id": record.thread_id,
        "tenant": record.tenant,
        "request": record.model_dump(mode="json", include={"request_id", "goal", "input", "input_sha256"}),
        "status": record.status,
        "times": record.model_dump(mode="json", include={"created_at", "ended_at"}),
        "result": outcome,
        "usage": usage,
    }
    return _text(told, indent=2) + b"\n"


def journal_file(rows: Iterable[Row]) -> bytes:
    """`journal.jsonl`."""
    return lines(_row(row) for row in rows)


def plans_file(rows: Iterable[Row]) -> bytes:
    """`plans.jsonl`."""
    return lines({**row.body, "at": row.at} for row in rows if row.kind == "plan")


def lines(values: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object a line."""
    return b"".join(_text(value) + b"\n" for value in values)


def manifest(run_id: str, files: Mapping[str, bytes | tuple[int, str]]) -> bytes:
    """`manifest.json` of these files; each is given by its size in bytes and its hex SHA-256, or by its bytes."""
    known = {path: file if isinstance(file, tuple) else measured(file) for path, file in files.items()}
    told = {path: {"size": size, "sha256": sha256} for path, (size, sha256) in sorted(known.items())}
    return _text({"format_version": FORMAT_VERSION, "run_id": run_id, "files": told}, indent=2) + b"\n"


def measured(body: bytes) -> tuple[int, str]:
    """Size in bytes and hex SHA-256."""
    return len(body), hashlib.sha256(body).hexdigest()


def read_file(place: Place, folder: str, path: str) -> bytes:
    """A file of an archived run, checked against the manifest. ArtifactMissing when it is gone or was changed,
    VersionTooNew when a newer Surestep has written it, Unreadable when nobody has."""
    try:
        return _checked(place, folder, path, json.loads(place.read(f"{folder}/{MANIFEST}")))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"the manifest of the archive {folder} is none that Surestep has written") from error


def _checked(place: Place, folder: str, path: str, told: dict[str, Any]) -> bytes:
    if told["format_version"] > FORMAT_VERSION:
        raise VersionTooNew(
            f"the archive {folder} has format {told['format_version']}, and this Surestep reads formats up to "
            f"{FORMAT_VERSION}; install the newer version"
        )
    if path not in told["files"]:
        raise ArtifactMissing(f"the archive {folder} has no file {path}")
    body = place.read(f"{folder}/{path}")
    if measured(body) != (told["files"][path]["size"], told["files"][path]["sha256"]):
        raise ArtifactMissing(f"the archived file {folder}/{path} was changed: its bytes are not those of the manifest")
    return body


def rows_from(run_id: str, journal: bytes) -> list[Row]:
    """The rows in a `journal.jsonl`. Unreadable for one that holds anything else."""
    try:
        return [_row_from(run_id, json.loads(line)) for line in journal.splitlines()]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"the archived journal of run {run_id} is none that Surestep has written") from error


def missing_of(place: Place, folder: str, written: bytes, files: Sequence[tuple[str, int]]) -> list[str]:
    """What of a folder that was just written is not there as it should be: the last look before anything is deleted."""
    found = place.sizes(folder)
    wrong = [path for path, size in files if found.get(path) != size]
    return wrong if place.read(f"{folder}/{MANIFEST}") == written else [MANIFEST, *wrong]


def _row(row: Row) -> dict[str, Any]:
    named = {name: getattr(row, name) for name in ("fence", "n", "kind", "step_id", "attempt", "at")}
    return {**named, "body": row.body}


def _row_from(run_id: str, told: dict[str, Any]) -> Row:
    return Row(run_id=run_id, **{**told, "at": datetime.fromisoformat(told["at"]) if told["at"] else None})


def _text(value: Any, indent: int | None = None) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_moment).encode("utf-8")


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"a {type(value).__name__} is not JSON")


def _quoted(name: str) -> str:
    """The name as one part of a path, on any file system; a long one is cut and told apart by its hash."""
    text = quote(name, safe="")
    if len(text) <= _LONGEST_NAME:
        return text
    return f"{quote(name[:10], safe='')}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"
