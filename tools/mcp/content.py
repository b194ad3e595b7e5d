"""What a call of a server's tool gave, as JSON: structured content first, else its text; bytes become files."""

from __future__ import annotations

import asyncio
import base64
import binascii
import mimetypes
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from plans.values import JSON
from tools.context import ToolContext
from tools.output import BadOutput

MAX_FILE = 64 * 1024 * 1024
"""Largest file that is taken over from a result, in bytes."""


def error_text(result: Mapping[str, Any]) -> str:
    """What a result that is an error says about it; a foreign text."""
    return "\n".join(_texts(result)) or "(no text)"


async def value_of(result: Mapping[str, Any], ctx: ToolContext, *, structured: bool) -> JSON:
    """The value of a result: its structured content, else one text, else an object with `text`, `files` (in the run's
    output folder) and `links`. `structured` says that the tool declares a result schema. Raises BadOutput."""
    if isinstance(result.get("structuredContent"), dict):
        return result["structuredContent"]
    if structured:
        raise BadOutput("OUTPUT_INVALID", "the tool declares what its results look like and gave no structured content")
    blocks = result.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise BadOutput(
            "OUTPUT_INVALID", "the tool's result is no result of an MCP tool: its content is no list of blocks"
        )
    text = "\n".join(_texts(result))
    others = [block for block in blocks if _text_of(block) is None]
    if not others:
        return text
    value: dict[str, JSON] = {"text": text, "files": [], "links": []}
    for block in others:
        if block.get("type") == "resource_link":
            value["links"].append({key: block[key] for key in ("uri", "name", "mimeType") if key in block})
        else:
            value["files"].append(await _filed(block, ctx))
    return value


def _texts(result: Mapping[str, Any]) -> list[str]:
    blocks = result.get("content")
    found = [_text_of(block) for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return [text for text in found if text is not None]


def _text_of(block: Mapping[str, Any]) -> str | None:
    holder = block.get("resource") if block.get("type") == "resource" else block
    kind = block.get("type")
    text = holder.get("text") if kind in ("text", "resource") and isinstance(holder, dict) else None
    return text if isinstance(text, str) else None


async def _filed(block: Mapping[str, Any], ctx: ToolContext) -> JSON:
    """The bytes of an image, a sound or a resource, in a file named by its hash."""
    holder = block.get("resource") if block.get("type") == "resource" else block
    encoded = (holder.get("blob") or holder.get("data")) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not isinstance(encoded, str):
        kind = "".join(c for c in str(block.get("type"))[:40] if c.isalnum() or c in "_-")
        raise BadOutput("OUTPUT_INVALID", f"the tool's result holds a block of a kind that is not known here: {kind}")
    if len(encoded) > MAX_FILE * 4 // 3 + 4:
        raise BadOutput("OUTPUT_INVALID", f"the tool's result holds a file of more than {MAX_FILE // 2**20} MB")
    try:
        body = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadOutput("OUTPUT_INVALID", "the tool's result holds a file that is no base64") from None
    said = holder.get("mimeType")
    mime = said if isinstance(said, str) else "application/octet-stream"
    path = await asyncio.to_thread(_write, ctx, mime, body)
    return {"path": path, "mime_type": mime, "bytes": len(body)}


def _write(ctx: ToolContext, mime: str, body: bytes) -> str:
    name = f"{ctx.step_id}-{sha256(body).hexdigest()[:12]}{mimetypes.guess_extension(mime) or '.bin'}"
    path = ctx.files.writable("".join(c if c.isalnum() or c in "._-" else "_" for c in name))
    path.write_bytes(body)
    return str(path)
