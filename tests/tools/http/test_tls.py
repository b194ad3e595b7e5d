"""TLS to the address that was checked still verifies the name that was asked for."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.tools.calls import code_of
from tests.tools.http.flaky import flaky_server, redirects, says
from tests.tools.http.reaching import calling
from tools.call import Outcome
from tools.http import http_toolkit
from tools.registry import Registry


def certificate_for(folder: Path, *names: str) -> Path:
    """A certificate that stands for itself, and its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    alternative: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    kind, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(certificate.public_bytes(kind) + key.private_bytes(kind, form, serialization.NoEncryption()))
    return file


async def fetched(folder: Path, *names: str, trusted: bool = True) -> tuple[Outcome, str | None]:
    """The outcome of a call of https://api.example.com at this machine, and the name that TLS was asked for there."""
    file = certificate_for(folder, *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    with flaky_server(context) as server:
        server.on("/", says("{}"))
        server.on("/down", redirects(f"http://api.example.com:{server.port}/"))
        kit = http_toolkit(
            [f"api.example.com:{server.port}"],
            ["api.example.com=127.0.0.1"],
            certificates=file if trusted else None,
            resolve=resolve,
        )
        path = "/" if "down" not in names else "/down"
        outcome = await calling(Registry.of(kit)["http"], {"url": f"https://api.example.com:{server.port}{path}"})
    return outcome, asked[0] if asked else None


async def test_the_name_is_verified_and_not_the_address(tmp_path: Path) -> None:
    """The server is asked for by its name, and its certificate is good for it."""
    outcome, asked = await fetched(tmp_path, "api.example.com")
    assert (code_of(outcome), asked) == ("OK", "api.example.com")


@pytest.mark.parametrize("names", [("other.example.com",), ("127.0.0.1",)])
async def test_a_certificate_of_somebody_else_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    """One for another name, or for the address alone, is no proof: nothing was sent."""
    outcome, _ = await fetched(tmp_path, *names)
    assert code_of(outcome) == "UNAVAILABLE"


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """Only known authorities, and those in the file that a person has named."""
    outcome, _ = await fetched(tmp_path, "api.example.com", trusted=False)
    assert code_of(outcome) == "UNAVAILABLE"


async def test_https_does_not_lead_down_to_http(tmp_path: Path) -> None:
    """A redirect from https to http is not followed, also to the same host."""
    outcome, _ = await fetched(tmp_path, "api.example.com", "down")
    assert code_of(outcome) == "NOT_PERMITTED"
