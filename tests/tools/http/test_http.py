"""The tool `http` against a real server: what it gives back, what it sends, where it does not follow."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tools.calls import code_of
from tests.tools.http.flaky import HOST, FlakyServer, Script, flaky_server, head, raw, redirects, says
from tests.tools.http.reaching import calling, http_tool, message_of, value_of
from tools.http import http_toolkit
from tools.http.inflate import Inflated
from tools.registry import Registry


def gzipped(body: bytes) -> bytes:
    """Packed with gzip, the same at any second: two processes that collect these tests have to agree on them."""
    return gzip.compress(body, mtime=0)


async def test_json_comes_as_a_value(server: FlakyServer) -> None:
    """Status, final URL, type and the body's value; only headers that describe the body."""
    url = server.on("/order", says('{"id": 7, "late": true}', ETag='"x"', Set_Cookie="a=b", Server="secret/1"))
    assert value_of(await calling(http_tool(server), {"url": url, "params": {"q": "a&b"}})) == {
        "status": 200,
        "url": f"{url}?q=a%26b",
        "media_type": "application/json",
        "headers": {"content-length": "23", "etag": '"x"'},
        "json": {"id": 7, "late": True},
        "text": None,
        "truncated": False,
    }
    assert server.requests[0].path == "/order?q=a%26b"


@pytest.mark.parametrize(
    ("media", "body", "text"),
    [
        ("text/plain; charset=latin-1", "Zürich".encode("latin-1"), "Zürich"),
        ("text/plain", "Zürich".encode(), "Zürich"),
        ("text/plain", "\ufeffZürich".encode("utf-16-le"), "Zürich"),
        ("text/html", '<meta charset="iso-8859-2">ł'.encode("iso-8859-2"), '<meta charset="iso-8859-2">ł'),
        ("text/csv; charset=no-such", b"a,b", "a,b"),
        ("text/plain; charset=zip", b"a", "a"),
        ("text/plain; charset=idna", b"a", "a"),
        ("text/plain; charset=undefined", b"a", "a"),
        ("text/plain; charset=punycode", b"a-" + b"b" * 100, "a-" + "b" * 100),
        ("text/plain; charset=unicode_escape", rb"\u0041", r"\u0041"),
        ("text/plain; charset*=utf-8''%00", b"a", "a"),
        ("application/xml", b"<a/>", "<a/>"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        ("text/plain", b"a\xffb", "a\ufffdb"),
        ("", b"plain", "plain"),
        ("text/plain", b"", None),
    ],
)
async def test_text_comes_by_its_charset(server: FlakyServer, media: str, body: bytes, text: str | None) -> None:
    """A mark, the header, an HTML page's own word, else UTF-8; what is none of it is replaced, never a failure."""
    url = server.on("/page", says(body, media=media))
    assert value_of(await calling(http_tool(server), {"url": url}))["text"] == text


@pytest.mark.parametrize(
    ("media", "body", "words"),
    [
        ("application/pdf", b"%PDF", "application/pdf; only JSON and text"),
        ("text/plain", b"a\x00b", "binary"),
        ("application/json", b'{"a": 1, "a": 2}', "stands twice"),
        ("application/json", b'{"a": NaN}', "NaN"),
        ("application/json", b'{"a": ', "cannot be read"),
        ("application/json", b"<html>", "cannot be read"),
        ("application/problem+json", b"\xff", "no UTF-8"),
        ("application/json", b"[" * 100_000, "too deeply"),
        ("application/json", b'"\\u0000"', "cannot be stored"),
        ("application/json", b'{"n": 1e999}', "n is inf"),
    ],
)
async def test_what_is_neither_json_nor_text_is_refused(
    server: FlakyServer, media: str, body: bytes, words: str
) -> None:
    """OUTPUT_INVALID with a sentence; nothing is guessed or completed."""
    outcome = await calling(http_tool(server), {"url": server.on("/odd", says(body, media=media))})
    assert code_of(outcome) == "OUTPUT_INVALID"
    assert words in message_of(outcome)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzipped(b"hello")),
        ("x-gzip", gzipped(b"hel") + gzipped(b"lo")),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
    ],
)
async def test_compression_is_undone(server: FlakyServer, encoding: str, packed: bytes) -> None:
    """gzip in one or more members, and deflate in both of its forms."""
    url = server.on("/packed", says(packed, media="text/plain", Content_Encoding=encoding))
    assert value_of(await calling(http_tool(server), {"url": url}))["text"] == "hello"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", b"hello"), ("deflate", b"\xff\xff"), ("br", b"hello"), ("gzip, gzip", gzipped(b"hello")),
        ("gzip", gzipped(b"hello" * 100)[:-9]),
    ],
)  # fmt: skip
async def test_compression_that_cannot_be_undone_is_no_result(
    server: FlakyServer, encoding: str, packed: bytes
) -> None:
    """Neither a lie about the encoding nor a body that ends too early passes for text."""
    url = server.on("/packed", says(packed, media="text/plain", Content_Encoding=encoding))
    assert code_of(await calling(http_tool(server), {"url": url})) == "OUTPUT_INVALID"


@pytest.mark.parametrize("packed", [False, True])
async def test_a_huge_body_is_cut_off(server: FlakyServer, packed: bool) -> None:
    """Text ends at the limit and says so, counted after decompression; a bomb never unfolds."""
    bomb = gzip.compress(b"x" * 50_000_000) if packed else b"x" * 500_000
    encoding = "gzip" if packed else "identity"
    url = server.on("/huge", says(bomb, media="text/plain", Content_Encoding=encoding))
    fetched = value_of(await calling(http_tool(server, most_bytes=10_000), {"url": url}))
    assert (len(fetched["text"]), fetched["truncated"]) == (10_000, True)


def test_a_bomb_does_not_unfold_in_a_piece() -> None:
    """What is undone of one piece is never more than there is room for."""
    bomb = gzip.compress(b"x" * 5_000_000)
    assert len(Inflated("gzip").decoded(bomb, 1_000)) == 1_000
    assert len(Inflated("deflate").decoded(zlib.compress(b"x" * 5_000_000)[2:-4], 1_000)) == 1_000


async def test_a_character_at_the_limit_is_whole_or_not_there(server: FlakyServer) -> None:
    """A text that was cut inside of a character ends before it."""
    url = server.on("/umlauts", says("ü" * 1_000, media="text/plain"))
    assert value_of(await calling(http_tool(server, most_bytes=1_001), {"url": url}))["text"] == "ü" * 500


async def test_json_that_was_cut_off_is_no_value(server: FlakyServer) -> None:
    """Too much JSON is a failure that says how much."""
    url = server.on("/huge", says("[" + "1," * 10_000 + "1]"))
    outcome = await calling(http_tool(server, most_bytes=10_000), {"url": url})
    assert (code_of(outcome), "more than 10,000 bytes" in message_of(outcome)) == ("OUTPUT_INVALID", True)


async def test_an_endless_body_ends(server: FlakyServer) -> None:
    """A body without an end is read to the limit and no further."""
    script = raw(head(200, {"Content-Type": "text/plain"}) + b"x" * 3_000_000)
    fetched = value_of(await calling(http_tool(server), {"url": server.on("/endless", script)}))
    assert (len(fetched["text"]), fetched["truncated"]) == (2_000_000, True)


async def test_head_reads_no_body(server: FlakyServer) -> None:
    """HEAD is HEAD on the wire, and gives what describes the body."""
    url = server.on("/big", says("x" * 99, media="text/plain"))
    fetched = value_of(await calling(http_tool(server), {"url": url, "method": "HEAD"}))
    assert (fetched["headers"]["content-length"], fetched["text"], server.requests[0].method) == ("99", None, "HEAD")


async def test_what_a_plan_may_send(server: FlakyServer) -> None:
    """Descriptive headers go out; credentials, cookies, hosts and everything else never do."""
    url = server.on("/", says("{}"))
    headers = {"Accept": "text/plain", "If-None-Match": '"x"'}
    assert code_of(await calling(http_tool(server), {"url": url, "headers": headers})) == "OK"
    assert server.requests[0].headers == {
        "user-agent": "surestep",
        "accept-encoding": "gzip, deflate",
        "connection": "close",
        "accept": "text/plain",
        "if-none-match": '"x"',
        "host": f"{HOST}:{server.port}",
    }
    for name in ("Authorization", "Cookie", "Host", "X-Api-Key", "Proxy-Authorization", "Transfer-Encoding", "X-A"):
        assert code_of(await calling(http_tool(server), {"url": url, "headers": {name: "a"}})) == "NOT_PERMITTED"
    for value in ("a\r\nX: y", "a\x00", "ü"):
        assert code_of(await calling(http_tool(server), {"url": url, "headers": {"Accept": value}})) == "INVALID_ARGS"
    assert code_of(await calling(http_tool(server), {"url": url, "method": "POST"})) == "INVALID_ARGS"
    assert len(server.requests) == 1


async def test_nothing_of_the_environment_is_used(
    server: FlakyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a proxy, nor a .netrc, nor a cookie of an answer before."""
    (tmp_path / ".netrc").write_text(f"machine {HOST} login u password p")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    url = server.on("/", says("{}", Set_Cookie="session=1"))
    tool = http_tool(server)
    for _ in range(2):
        assert code_of(await calling(tool, {"url": url})) == "OK"
    assert [set(request.headers) & {"cookie", "authorization"} for request in server.requests] == [set(), set()]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(server: FlakyServer, status: int) -> None:
    """Relative and absolute ones, with what was sent, to the last URL."""
    server.on("/c", says("{}"))
    server.on("/b", redirects(server.url("/c")))
    url = server.on("/a", redirects("/b?x=1", status))
    fetched = value_of(await calling(http_tool(server), {"url": url, "headers": {"If-None-Match": '"x"'}}))
    assert fetched["url"] == server.url("/c")
    assert all(request.headers["if-none-match"] == '"x"' for request in server.requests)


async def test_what_was_sent_does_not_follow_to_another_server(server: FlakyServer) -> None:
    """Across hosts, or ports of one, only what says nothing about the caller goes on."""
    with flaky_server() as other:
        there = other.on("/", says("{}"))
        url = server.on("/", redirects(there))
        headers = {"If-None-Match": '"x"', "Accept": "text/plain"}
        tool = http_tool(server, f"{HOST}:{other.port}")
        assert code_of(await calling(tool, {"url": url, "headers": headers})) == "OK"
    assert "if-none-match" not in other.requests[0].headers
    assert other.requests[0].headers["accept"] == "text/plain"


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://127.0.0.1:{port}/", "NOT_PERMITTED"),
        ("http://169.254.169.254/latest/meta-data/", "NOT_PERMITTED"),
        ("http://[::1]:{port}/", "NOT_PERMITTED"),
        ("http://0x7f.1:{port}/", "NOT_PERMITTED"),
        ("http://localhost:1/", "NOT_PERMITTED"),
        ("file:///etc/passwd", "NOT_PERMITTED"),
        ("//evil.example.org/", "NOT_PERMITTED"),
        ("http://inside.example.com/", "NOT_PERMITTED"),
        ("http://meta.example.com/", "NOT_PERMITTED"),
        ("http://u:p@localhost:{port}/", "NOT_PERMITTED"),
    ],
)
@pytest.mark.parametrize("hops", [0, 2])
async def test_each_hop_is_guarded(server: FlakyServer, location: str, code: str, hops: int) -> None:
    """Wherever a redirect leads, on the first hop or the third, it is checked like the first URL: nobody else is
    called, also where an allowed name leads inside."""
    inside = {"inside.example.com": "127.0.0.1", "meta.example.com": "169.254.169.254", HOST: "127.0.0.1"}

    async def resolve(host: str, _port: int) -> Sequence[str]:
        return [inside[host]]

    server.on("/", says("{}"))
    server.on("/hop0", redirects(location.format(port=server.port)))
    for hop in range(1, hops + 1):
        server.on(f"/hop{hop}", redirects(f"/hop{hop - 1}"))
    tool = http_tool(server, "*.example.com", "127.0.0.1", "169.254.169.254", resolve=resolve)
    assert code_of(await calling(tool, {"url": server.url(f"/hop{hops}")})) == code
    assert len(server.requests) == hops + 1


async def test_redirects_end(server: FlakyServer) -> None:
    """A circle is seen when it closes, and a chain after five."""
    server.on("/a", redirects("/b"))
    server.on("/b", redirects("/a"))
    outcome = await calling(http_tool(server), {"url": server.url("/a")})
    assert (code_of(outcome), len(server.requests)) == ("INVALID_INPUT", 2)
    for number in range(9):
        server.on(f"/{number}", redirects(f"/{number + 1}"))
    outcome = await calling(http_tool(server), {"url": server.url("/0")})
    assert ("more than 5" in message_of(outcome), len(server.requests)) == (True, 2 + 6)


async def test_a_name_that_changes_its_address_is_caught(server: FlakyServer) -> None:
    """Each call looks the name up once and connects to what was checked; a name that first led outside and then
    inside gets nothing from its second answer."""
    answers = [["127.0.0.1"], ["169.254.169.254"], ["10.0.0.1", "127.0.0.1"]]
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    tool = http_tool(server, resolve=resolve)
    url = server.on("/", says("{}"))
    outcomes = [await calling(tool, {"url": url}) for _ in answers]
    assert [code_of(outcome) for outcome in outcomes] == ["OK", "NOT_PERMITTED", "NOT_PERMITTED"]
    assert (len(asked), len(server.requests)) == (3, 1)


async def test_a_second_address_is_tried(server: FlakyServer) -> None:
    """Where the first of a name's addresses refuses, the next one is connected to."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["::1", "127.0.0.1"]

    private = ["two.example.com=127.0.0.1", "two.example.com=::1"]
    kit = http_toolkit([f"two.example.com:{server.port}"], private, resolve=resolve)
    server.on("/", says("{}"))
    url = f"http://two.example.com:{server.port}/"
    assert code_of(await calling(Registry.of(kit)["http"], {"url": url})) == "OK"


async def test_nothing_is_reached_without_a_setting() -> None:
    """With no hosts configured, the tool says what to set and is not to be offered."""
    tool = Registry.of(http_toolkit())["http"]
    outcome = await calling(tool, {"url": "https://example.com/"})
    assert code_of(outcome) == "TOOL_DISABLED"
    assert "SURESTEP_HTTP_HOSTS" in message_of(outcome)
    assert tool.to_configure is not None


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (says("{}", 304), "OK"), (says("{}", 204), "OK"), (says("{}", 404), "NOT_FOUND"), (says("{}", 401),
        "NOT_PERMITTED"),
        (says("{}", 422), "INVALID_ARGS"), (says("{}", 500), "UNAVAILABLE"), (says("{}", 302), "TOOL_ERROR"),
        (says("{}", 300), "TOOL_ERROR"), (raw(b"SSH-2.0-OpenSSH\r\n"), "UNAVAILABLE"), (raw(b""), "UNAVAILABLE"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000), "UNAVAILABLE"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "UNAVAILABLE"),
    ],
)  # fmt: skip
async def test_each_status_has_its_code(server: FlakyServer, script: Script, code: str) -> None:
    """What is no result is a failure by the one table of statuses; its body stays out of the message."""
    outcome = await calling(http_tool(server), {"url": server.on("/x", script)})
    assert code_of(outcome) == code


@pytest.mark.parametrize("packed", [zlib.compress(b"hello"), zlib.compress(b"hello")[2:-4], gzipped(b"hello")])
def test_what_is_packed_may_come_byte_by_byte(packed: bytes) -> None:
    """The form of deflate is told by its first two bytes, however they come; a body of one byte has not ended."""
    inflated = Inflated("gzip" if packed[:2] == b"\x1f\x8b" else "deflate")
    assert inflated.decoded(packed[:1], 100) == b""
    assert not inflated.ended
    assert b"".join(inflated.decoded(packed[n : n + 1], 100) for n in range(1, len(packed))) == b"hello"
    assert inflated.ended


@pytest.mark.parametrize(("encoding", "body"), [("br", b"abc"), ("gzip", gzipped(b"hello")[:10]), ("gzip", b"no")])
@pytest.mark.parametrize(("status", "code", "calls"), [(404, "NOT_FOUND", 1), (503, "UNAVAILABLE", 3)])
async def test_a_status_counts_whatever_its_body_is(
    server: FlakyServer, encoding: str, body: bytes, status: int, code: str, calls: int
) -> None:
    """An error that cannot be unpacked is the error that it says it is, and is tried again like one."""
    url = server.on("/x", says(body, status, Content_Encoding=encoding))
    assert (code_of(await calling(http_tool(server), {"url": url})), len(server.requests)) == (code, calls)
