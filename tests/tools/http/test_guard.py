"""What may be reached: spellings of URLs, hosts that are allowed, and addresses that are not public."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpcore
import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plans.failure import ToolFailure
from tools.http.addresses import not_public
from tools.http.connect import GuardedNetwork
from tools.http.hosts import Hosts, patterns, private_addresses
from tools.http.urls import DEFAULT_PORTS, parse, redirected

EVERYTHING = Hosts(patterns(["*.example.com", "example.com", "localhost", "127.0.0.1", "[::1]", "169.254.169.254"]))

SPELLINGS = [
    # schemes
    "file:///etc/passwd", "gopher://example.com:70/_x", "ftp://example.com/", "dict://127.0.0.1:11211/stat",
    "javascript:alert(1)", "data:text/plain,x", "//example.com/", "example.com/x", "", "http:", "http://", "https:///x",
    "http:example.com", "http:/example.com", "jar:http://example.com!/", "unix://example.com/x", "ws://example.com/",
    # numbers that stand for addresses
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://00000000/", "http://127.0.0.01/", "http://1.1.1.1.1/",
    "http://0x7f.1/", "http://0xA9FEA9FE/", "http://2852039166/", "http://169.254.43518/",
    "http://0251.0376.0251.0376/",
    "http://127.0.0.256/", "http://4294967297/", "http://example.com.0x7f/", "http://example.123/",
    "http://127.0.0.1./",
    # users, and where a host seems to end
    "http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", "http://user:pass@example.com/",
    "http://@example.com",
    "http://example.com:80@127.0.0.1/", "http://example.com%40127.0.0.1/", "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\.example.com/", "http:\\\\127.0.0.1/", "http://example.com#@127.0.0.1:@/\x00",
    # dots, empty and odd labels
    "http://example.com./", "http://localhost./", "http://.example.com/", "http://example..com/",
    "http://-a.example.com/",
    "http://a_.-.example.com/", f"http://{'a' * 64}.example.com/", f"http://{'a.' * 127}example.com/",
    "http://*.example.com/",
    # letters that look like others
    "http://ex\u0430mple.com/", "http://\u24d4xample.com/", "http://127\u30020\u30020\u30021/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://example\u3002com/", "http://ex\u00adample.com/", "http://\u2488.example.com/", "http://e\u0301xample.com/",
    # escapes, white space and control characters
    "http://127.0.0.1%2f.example.com/", "http://%31%32%37.0.0.1/", "http://exam%70le.com/", "http://example.com%00.b/",
    " http://example.com/", "http://example.com/ ", "http://exa\tmple.com/", "http://example.com\n/",
    "http://example.com/\r\nX: y",
    "http://example.com/a b", "http://example.com/\x7f",
    # ports and brackets
    "http://example.com:0/", "http://example.com:65536/", "http://example.com:99999/", "http://example.com:+80/",
    "http://example.com:80:80/", "http://example.com:8e1/", "http://[::1/", "http://::1/", "http://[::1%25eth0]/",
    "http://[v1.x]/", "http://[127.0.0.1]/", "http://[example.com]/", "http://[::1].example.com/", "http://[::1]x/",
    f"http://example.com/{'a' * 8_000}",
]  # fmt: skip


@pytest.mark.parametrize("url", SPELLINGS, ids=range(len(SPELLINGS)))
def test_no_spelling_gets_past(url: str) -> None:
    """What is no plain http or https URL, or can be read in two ways, is refused before anything is looked up."""
    with pytest.raises(ToolFailure) as refused:
        EVERYTHING.check(parse(url))
    assert refused.value.code in ("NOT_PERMITTED", "INVALID_ARGS")


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("https://Example.COM", "example.com", "/"),
        ("HTTP://example.com:80/a?b=c#frag", "example.com", "/a?b=c"),
        ("https://example.com?q=1", "example.com", "/?q=1"),
        ("https://example.com:8443/a/../b;c/%2e%2e/", "example.com:8443", "/a/../b;c/%2e%2e/"),
        ("https://example.com/Zürich?q=ä", "example.com", "/Z%C3%BCrich?q=%C3%A4"),
        ('https://example.com/{a}|"b"<c>', "example.com", "/%7Ba%7D%7C%22b%22%3Cc%3E"),
        ("https://xn--mnchen-3ya.example.com/", "xn--mnchen-3ya.example.com", "/"),
        ("http://[::ffff:7f00:1]:99/", "[::ffff:127.0.0.1]:99", "/"),
        ("http://93.184.216.34/", "93.184.216.34", "/"),
    ],
)
def test_a_plain_url_is_taken_as_it_is(url: str, authority: str, path: str) -> None:
    """Case and usual ports fold, what must be escaped is escaped, and nothing else changes."""
    target = parse(url)
    assert (target.authority, target.path) in {(authority, path), (authority.replace("127.0.0.1", "7f00:1"), path)}


_HOSTS = st.text("ab1-._x%@:[]\\é\u3002", min_size=1, max_size=8).map("http://{}".format) | st.just(
    "https://a.example.com"
)
_ENDS = st.text("/?#\\.[]%@:;=&aéü{}'\"|<> \t", max_size=12)


@given(st.one_of(st.text(max_size=30), st.builds("{}{}".format, _HOSTS, _ENDS.map("/{}".format) | _ENDS)))
@example("https://a.example.com/é?ü={}#x")
def test_no_two_readers_disagree_about_what_is_sent(url: str) -> None:
    """Of any text that is taken, three other readers of URLs see the same host and port, and no user."""
    try:
        target = parse(url)
    except ToolFailure:
        return
    for read in (urlsplit(target.url), httpx.URL(target.url)):
        host = read.host if isinstance(read, httpx.URL) else read.hostname
        assert (host, read.port or DEFAULT_PORTS[target.scheme]) == (target.host, target.port)
        assert not read.username
    sent = httpcore.URL(target.url)
    assert (sent.host.decode(), sent.target.decode()) == (target.host, target.path)
    assert parse(target.url) == target


def test_parameters_are_escaped_and_added() -> None:
    """A value cannot end its parameter, whatever it holds; a list gives its name once per element."""
    target = parse("https://example.com/a?x=1", {"q": "a&b=c#d\r\n", "n": [1, 2.5, True], "é": "ü"})
    assert target.path == "/a?x=1&q=a%26b%3Dc%23d%0D%0A&n=1&n=2.5&n=true&%C3%A9=%C3%BC"


@pytest.mark.parametrize(
    ("entry", "url", "may"),
    [
        ("example.com", "https://example.com/", True),
        ("example.com", "http://example.com/", True),
        ("example.com", "https://www.example.com/", False),
        ("example.com", "https://example.com:8443/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("example.com:8443", "https://example.com/", False),
        ("example.com", "https://example.com:80/", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://evilexample.com/", False),
        ("*.example.com", "https://example.com.evil.org/", False),
        ("Example.com", "https://EXAMPLE.com/", True),
        ("[2606:4700::1111]", "https://[2606:4700:0:0::1111]/", True),
    ],
)
def test_a_host_is_allowed_by_its_name_and_port(entry: str, url: str, may: bool) -> None:
    """Exact names, or all below one; the usual port, or the one that is named."""
    hosts = Hosts(patterns([entry]))
    if may:
        hosts.check(parse(url))
    else:
        with pytest.raises(ToolFailure, match=r"allowed are .*http_hosts"):
            hosts.check(parse(url))


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.com", "https://a.example.com", "a.example.com/x", "a b", "u@a.example.com", "a:0", "a:70000",
    "münchen.de",
     "127.1", "0x7f.1", "example.com.", "a..b", "[::1", "[zz]", "*.*.example.com"],
)  # fmt: skip
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    """A slip in the settings is told, not guessed about."""
    with pytest.raises(ValueError, match=r"\S"):
        patterns([entry])


@pytest.mark.parametrize(
    "entry",
    ["a.example.com", "=10.0.0.1", "a.example.com=", "a.example.com=b", "a.example.com=169.254.169.254", "a=0.0.0.0/0",
     "a=::/0", "a=fe80::1", "a=224.0.0.1", "a=10.0.0.1/8", "a=168.63.129.16", "a=fd00::/8", "*.a.com=10.0.0.1",
     "a=::ffff:169.254.169.254", "a=64:ff9b::/96", "a=64:ff9b::a9fe:a9fe", "a=2002:a9fe:a9fe::1", "a=::a9fe:a9fe"],
)  # fmt: skip
def test_what_no_setting_can_allow(entry: str) -> None:
    """Metadata services, link-local and multicast addresses are refused even as private ones, and so are slips."""
    with pytest.raises(ValueError, match=r"\S"):
        private_addresses([entry])


ADDRESSES = [
    "0.0.0.1", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.254", "127.0.0.1",
    "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:93.184.216.34", "64:ff9b::7f00:1", "64:ff9b::5db8:d822",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:0:53aa:64c:0:0:0:1", "2001:10::1", "2001:db8::1", "2002:7f00:1::",
    "2002:5db8:d822::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1", "fe80::1", "fec0::1",
    "ff02::1",
    "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_not_public_is_known(address: str) -> None:
    """Private, own, link-local, shared, multicast and reserved ones, and IPv4 in any dress of IPv6."""
    assert not_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1",
                "223.255.255.255",
                "2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888"]
)  # fmt: skip
def test_a_public_address_may_be_used(address: str) -> None:
    """Neighbours of reserved blocks are not caught with them."""
    assert not_public(ipaddress.ip_address(address)) is None


async def looked_up(found: Sequence[str], *, private: Sequence[str] = (), host: str = "a.example.com") -> list[str]:
    """The addresses that a guarded network would connect to, if a name has those."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return found

    network = GuardedNetwork(Hosts((), private_addresses(private)), resolve)
    return [str(address) for address in await network.addresses(host, 443)]


@pytest.mark.parametrize("address", [*ADDRESSES, "fe80::1%eth0"])
async def test_a_name_that_leads_inside_is_refused(address: str) -> None:
    """What counts is where a name leads, and one bad address among good ones is enough."""
    for found in ([address], ["93.184.216.34", address], [address, "93.184.216.34"]):
        with pytest.raises(ToolFailure, match=r"a\.example\.com is at an? .*") as refused:
            await looked_up(found)
        assert refused.value.code == "NOT_PERMITTED"


async def test_an_address_in_place_of_a_name_is_checked_alike() -> None:
    """An address that a person has allowed as a host is still refused if it is not public."""
    with pytest.raises(ToolFailure, match=r"127\.0\.0\.1 is at an address of this machine"):
        await looked_up([], host="127.0.0.1")


async def test_an_internal_service_is_allowed_by_name_and_address() -> None:
    """Exactly this name, at exactly these addresses."""
    allowed = ["a.example.com=10.0.0.5", "a.example.com=10.1.0.0/24"]
    assert await looked_up(["10.0.0.5", "10.1.0.9"], private=allowed) == ["10.0.0.5", "10.1.0.9"]
    with pytest.raises(ToolFailure, match="a private address"):
        await looked_up(["10.0.0.6"], private=allowed)
    with pytest.raises(ToolFailure, match="a private address"):
        await looked_up(["10.0.0.5"], private=allowed, host="b.example.com")


async def test_a_name_without_an_address_is_unavailable() -> None:
    """Nobody was reached, so the failure is one that may pass."""
    with pytest.raises(ToolFailure, match=r"the name a\.example\.com could not be found") as missing:
        await looked_up([])
    assert missing.value.code == "UNAVAILABLE"


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b", "https://example.com/b"), ("b?c=d", "https://example.com/a/b?c=d"), ("//other.org/x",
        "https://other.org/x"),
        ("https://other.org", "https://other.org/"), ("?q", "https://example.com/a/x?q"), ("../../..",
        "https://example.com/"),
        ("http://example.com/", None), ("file:///etc/passwd", None), ("//127.1/", None), ("https://u@example.com/",
        None),
        ("/\\evil.org", None), ("/a\r\nX: y", None), ("https://[::1", None), ("https://ex\u0430mple.com/", None),
    ],
)  # fmt: skip
def test_where_a_redirect_may_lead(location: str, leads_to: str | None) -> None:
    """Locations are read against where they came from, as strictly as the first URL, and never down from https."""
    source = parse("https://example.com/a/x")
    if leads_to is None:
        with pytest.raises(ToolFailure, match="redirects") as refused:
            redirected(source, location)
        assert refused.value.code == "NOT_PERMITTED"
    else:
        assert redirected(source, location).url == leads_to
