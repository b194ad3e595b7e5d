"""Every place that opens a connection by itself, with receivers and servers that would lead it inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from graph.settings import Settings
from graph.webhooks import NotDelivered, webhook_from
from plans.errors import ConfigurationError
from tests.graph.receiver import SECRET
from tests.tools.http.test_guard import ADDRESSES, SPELLINGS
from tests.tools.mcp.test_hostile import Hostile, called, hostile

__all__ = ["hostile"]
INSIDE = [
    "http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:{port}/canary", "http://localhost:{port}/canary",
    "http://[::ffff:127.0.0.1]:{port}/canary", "http://2130706433:{port}/canary", "//127.0.0.1:{port}/canary",
    "/canary", "file:///etc/passwd", "gopher://127.0.0.1:{port}/canary", "https://user:pw@localhost:{port}/canary",
]  # fmt: skip


def webhook(url: str, resolve: Any = None, **more: Any) -> Any:
    """A webhook of these settings."""
    settings = Settings.load(environment={}, notify_url=url, notify_secret=SECRET, **more)
    found = webhook_from(settings, resolve=resolve)
    assert found is not None
    return found


@pytest.mark.parametrize("url", SPELLINGS, ids=range(len(SPELLINGS)))
def test_no_spelling_of_an_address_is_a_webhook(url: str) -> None:
    """What can be read in two ways, names a user or is no web address is refused when the settings are read, and what
    it was is not repeated."""
    with pytest.raises(ConfigurationError) as refused:
        webhook(url)
    assert len(url) < 8 or url not in str(refused.value)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_webhook_goes_to_no_address_that_is_not_public(address: str) -> None:
    """Wherever the name of a receiver leads to, and if it is one address of several."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["93.184.216.34", address]

    with pytest.raises(NotDelivered, match="which is refused"):
        await webhook("https://hook.example.com/x", resolve).send("e1", b"{}", now=0)


async def test_a_receiver_whose_name_changes_is_looked_at_each_time(httpserver: HTTPServer) -> None:
    """A name that was public when it was set, and leads inside afterwards, gets no message."""
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    found = iter([["127.0.0.1"], ["169.254.169.254"], ["127.0.0.2"]])

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return next(found)

    hook = webhook(
        f"http://hook.example.com:{httpserver.port}/hook", resolve, http_private_hosts="hook.example.com=127.0.0.1"
    )
    await hook.send("e1", b"{}", now=0)
    for _ in range(2):
        with pytest.raises(NotDelivered, match="which is refused"):
            await hook.send("e1", b"{}", now=0)
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("location", INSIDE)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_receiver_leads_a_webhook_nowhere(status: int, location: str, httpserver: HTTPServer) -> None:
    """A redirect is an answer that nothing was taken: nothing is sent after it, neither message nor signature."""
    went = location.format(port=httpserver.port)
    httpserver.expect_request("/hook").respond_with_data("", status=status, headers={"Location": went})
    hook = webhook(f"http://localhost:{httpserver.port}/hook", http_private_hosts="localhost=127.0.0.1")
    with pytest.raises(NotDelivered, match="redirects are not followed"):
        await hook.send("e1", b"{}", now=0)
    assert [request.path for request, _ in httpserver.log] == ["/hook"]


@pytest.mark.parametrize("location", INSIDE)
async def test_a_server_of_tools_leads_a_call_nowhere_else(
    location: str,
    hostile: Hostile,
    httpserver: HTTPServer,  # a fixture that was imported
) -> None:
    """An MCP server that answers a call with a redirect: the headers with its key go to no other server."""
    seen = list[str]()

    def canary(request: Request) -> Response:
        seen.append(request.path)
        return Response("", 200)

    httpserver.expect_request("/canary").respond_with_handler(canary)
    hostile.status, hostile.headers = 307, {"Location": location.format(port=httpserver.port)}
    hostile.body = lambda _: b""
    await called(hostile, effect="read", timeout_s=2)
    assert seen == []
