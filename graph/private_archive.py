"""What goes into the archive: the files of a run without personal data. Its results stay what they are while the run is
in the database; what is kept for years is who did what, when and how it ended, and nobody's address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from plans.values import JSON
from tools.privacy import Privacy

NAMES = frozenset(
    {"run_id", "thread_id", "request_id", "tenant", "plan_id", "approval_id", "output_ref", "raw_ref", "text_ref", "at"}
)
"""Fields that name something: they are compared with names elsewhere, and stay. Hashes stay too."""


def cleaner(privacy: Privacy) -> Callable[[str, bytes], bytes]:
    """What cleans a file, by its path in the run's folder and its bytes. Bytes that are no text stay as they are."""
    return partial(_cleaned, privacy)


def _cleaned(privacy: Privacy, path: str, body: bytes) -> bytes:
    if privacy.detect is None:
        return body
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    if path.endswith(".jsonl"):
        return "".join(_json(privacy, line) for line in text.splitlines(keepends=True)).encode()
    return _json(privacy, text).encode()


def _json(privacy: Privacy, text: str) -> str:
    """JSON as JSON, so that it stays that; all else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return str(privacy.personal_in(text))
    cleaned = _without(privacy, value)
    if cleaned == value:
        return text
    indent, end = (2 if text.startswith("{\n") else None), ("\n" if text.endswith("\n") else "")
    separators = (",", ": ") if indent or '": ' in text[:200] else (",", ":")
    return json.dumps(cleaned, ensure_ascii=False, indent=indent, separators=separators) + end


def _without(privacy: Privacy, value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {
            name: item if name in NAMES or name.endswith("sha256") else _without(privacy, item)
            for name, item in ((privacy.personal_in(name), item) for name, item in value.items())
        }
    return [_without(privacy, item) for item in value] if isinstance(value, list) else privacy.personal_in(value)
