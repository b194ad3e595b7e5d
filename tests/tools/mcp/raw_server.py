"""An MCP server without an SDK, over stdio: `python raw_server.py FOLDER`; it does what FOLDER/script.json says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO

FOLDER = Path(sys.argv[1])


def note(word: str) -> None:
    """A line in the file of what was asked."""
    with (FOLDER / "calls.txt").open("a") as file:
        file.write(f"{word}\n")


def write(stream: TextIO, line: str) -> None:
    """A line, at once."""
    stream.write(f"{line}\n")
    stream.flush()


def say(message: dict[str, Any]) -> None:
    """One message to the client."""
    write(sys.stdout, json.dumps({"jsonrpc": "2.0", **message}))


def script() -> dict[str, Any]:
    """What to do, as the file says it now."""
    said: dict[str, Any] = json.loads((FOLDER / "script.json").read_text())
    return said


def listed(request: dict[str, Any]) -> None:
    """A page of the tools."""
    tools, size = script()["tools"], script().get("page", 10_000)
    start = int(request.get("params", {}).get("cursor") or 0)
    more = {"nextCursor": str(start + size)} if start + size < len(tools) else {}
    say({"id": request["id"], "result": {"tools": tools[start : start + size], **more}})


def called(request: dict[str, Any]) -> None:
    """The scripted answer to a call, by the tool's name."""
    params = request["params"]
    key = params.get("_meta", {}).get("surestep/idempotency-key")
    note(f"{params['name']} {json.dumps(params.get('arguments'))}{f' {key}' if key else ''}")
    answer = script().get("answers", {}).get(params["name"], {"result": {"content": [{"type": "text", "text": "ok"}]}})
    if "say_first" in answer:
        for message in answer["say_first"]:
            say(message)
    if "exit" in answer:
        os._exit(answer["exit"])
    if "kill_once" in answer and not (FOLDER / "killed").exists():
        (FOLDER / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if "environment" in answer:
        answer = {"result": {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}}
    if "kill_once" in answer:
        answer = {"result": {"content": [{"type": "text", "text": "ok"}]}}
    if "result" in answer or "error" in answer:
        say({"id": request["id"], **{key: answer[key] for key in ("result", "error") if key in answer}})


def main() -> None:
    """Answer until stdin is closed."""
    with (FOLDER / "pids.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    todo = script()
    for line in todo.get("garbage", []):
        write(sys.stdout, line)
    write(sys.stderr, todo.get("stderr", ""))
    if "exit" in todo:
        sys.exit(todo["exit"])
    for line in sys.stdin:
        request = json.loads(line)
        note_of_others(request)
        match request.get("method"):
            case "initialize" if not todo.get("mute"):
                version = todo.get("version", request["params"]["protocolVersion"])
                said = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
                say({"id": request["id"], "result": said})
            case "tools/list":
                listed(request)
            case "tools/call":
                called(request)
            case "ping":
                say({"id": request["id"], "result": {}})
    time.sleep(todo.get("linger", 0))


def note_of_others(message: dict[str, Any]) -> None:
    """What is neither a greeting, a list nor a call."""
    if message.get("method") not in ("initialize", "notifications/initialized", "tools/list", "tools/call"):
        note(json.dumps({key: message[key] for key in ("method", "params", "error", "result") if key in message}))


if __name__ == "__main__":
    main()
