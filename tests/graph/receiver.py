"""A receiver of webhooks on a real local server: it keeps what comes, judges it as a stranger would, and may refuse."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import b64encode
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

SECRET = "a secret of both sides"


class Receiver:
    """`heard` are the messages that were taken, `seen` the ids of all that came; the next answers may be set."""

    def __init__(self, server: HTTPServer) -> None:
        self.heard: list[dict[str, Any]] = []
        self.seen: list[str] = []
        self.answers: list[Response] = []
        self.url = server.url_for("/hook")
        self.settings: dict[str, Any] = {
            "notify_url": self.url,
            "notify_secret": SECRET,
            "http_private_hosts": f"{server.host}=127.0.0.1" if server.host != "localhost" else "localhost=127.0.0.1",
        }
        server.expect_request("/hook", method="POST").respond_with_handler(self._take)

    def types(self) -> list[str]:
        """What the messages were about, in the order in which they were taken."""
        return [message["type"] for message in self.heard]

    def _take(self, request: Request) -> Response:
        body = request.get_data()
        self.seen.append(request.headers["webhook-id"])
        if self.answers:
            return self.answers.pop(0)
        if not _is_genuine(request, body):
            return Response(status=401)
        self.heard.append(json.loads(body))
        return Response(status=204)


def _is_genuine(request: Request, body: bytes) -> bool:
    """Checked by the public description of the signature, not by the sender's code."""
    sent_at = request.headers["webhook-timestamp"]
    signed = f"{request.headers['webhook-id']}.{sent_at}.".encode() + body
    expected = b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    return request.headers["webhook-signature"] == f"v1,{expected}" and abs(time.time() - int(sent_at)) < 300
