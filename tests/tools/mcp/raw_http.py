"""An MCP server without an SDK, over streamable HTTP: `python raw_http.py FOLDER PORT`; FOLDER/script.json says what to
do with a call, by the tool's name: answer as JSON, as a stream of events, break off, refuse with a status, or die."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
SESSION = f"session-{os.getpid()}"


def note(word: str) -> None:
    """A line in the file of what was asked."""
    with (FOLDER / "calls.txt").open("a") as file:
        file.write(f"{word}\n")


class Answering(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script = json.loads((FOLDER / "script.json").read_text())
        if script.get("authorization") not in (None, self.headers.get("Authorization")):
            self.status(401)
        elif message.get("method") != "initialize" and self.headers.get("Mcp-Session-Id") != SESSION:
            self.status(404)
        elif "id" not in message:
            note(json.dumps(message)) if message["method"] == "notifications/cancelled" else None
            self.status(202)
        else:
            self.answer(message, script)

    def do_GET(self) -> None:
        self.status(405)

    def do_DELETE(self) -> None:
        note("session ended")
        self.status(200)

    def answer(self, message: dict[str, Any], script: dict[str, Any]) -> None:
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "raw", "version": "1"}
                self.json(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list":
                self.json(message, {"tools": script["tools"]})
            case "ping":
                self.json(message, {})
            case _:
                self.called(message, script)

    def called(self, message: dict[str, Any], script: dict[str, Any]) -> None:
        name = message["params"]["name"]
        note(f"{name} {json.dumps(message['params'].get('arguments'))}")
        answers = script.get("answers", {}).get(name, [{}])
        asked = sum(line.startswith(f"{name} ") for line in (FOLDER / "calls.txt").read_text().splitlines())
        answer = answers[min(asked, len(answers)) - 1]
        result = {"content": [{"type": "text", "text": "ok"}]}
        if "status" in answer:
            self.status(answer["status"], **answer.get("headers", {}))
        elif "stream" in answer:
            self.stream(answer["stream"], message, result)
        else:
            self.json(message, result)

    def stream(self, how: str, message: dict[str, Any], result: Any) -> None:
        """Events: "answer", "end" without one, "cut" in the middle, "kill" this process, or "hang" for ever."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b": begun\r\n\r\n")
        if how == "answer":
            said = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            self.chunk(f"event: message\r\ndata: {said}\r\n\r\n".encode())
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hang":
            time.sleep(60)
        if how == "cut":
            self.close_connection = True
            self.connection.close()
            return
        self.chunk(b"")

    def chunk(self, body: bytes) -> None:
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        self.wfile.flush()

    def json(self, message: dict[str, Any], result: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", SESSION)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def status(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with (FOLDER / "pids.txt").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Answering).serve_forever()
