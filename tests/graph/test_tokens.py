"""Tokens at the door of a server: what is believed, what is not, and settings of which half is missing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from graph.settings import Settings
from graph.tokens import Verifier, asks_for_tokens, made_token, verifier_from
from plans.errors import ConfigurationError, InvalidInput, NotAuthenticated
from plans.principals import Principal

SECRET = "0123456789abcdef0123456789abcdef"
WEAK = rsa.generate_private_key(65_537, 1_024)  # noqa: S505 (that is the point)
ANN = Principal(name="ann", roles=("support", "finance"), tenant="acme")


def settings(**said: Any) -> Settings:
    """Settings of a server that asks for tokens."""
    return Settings.load(environment={}, **{"auth_key": SECRET, "auth_audience": "surestep", **said})


def verifier(**said: Any) -> Verifier:
    """What these settings verify with."""
    found = verifier_from(settings(**said))
    assert found is not None
    return found


def token(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any) -> str:
    """A header with a token that is good but for what is said here; None leaves a claim out."""
    good = {"sub": "ann", "aud": "surestep", "exp": time.time() + 60, "tenant": "acme", "roles": ["support"]}
    said = {name: value for name, value in (good | claims).items() if value is not None}
    return f"Bearer {jwt.encode(said, key, algorithm, headers=headers)}"


def pem(key: PublicKeyTypes) -> str:
    """A public key as it is written in settings."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(key: PrivateKeyTypes) -> str:
    """A private key as somebody may paste it by mistake."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_a_token_that_was_made_here_names_its_principal() -> None:
    """Name, roles and tenant are those of the token, whole and nothing else."""
    made = made_token(settings(), ANN, 60, time.time())
    assert verifier().principal(f"Bearer {made}") == ANN
    assert verifier().principal(f"bearer   {made} ") == ANN


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic YW5uOmFubg==",
        "Bearer not.a.token",
        "Bearer " + "x" * 9_000,
        token("another secret of thirty-two bytes!"),
        token(exp=None),
        token(exp=time.time() - 60),
        token(exp=time.time() + 60, nbf=time.time() + 60),
        token(aud=None),
        token(aud="another server"),
        token(sub=None),
        token(sub=""),
        token(sub=["ann"]),
        token(sub="ann\u202e"),
        token(roles="support"),
        token(roles=[1]),
        token(roles=["a b"]),
        token(roles=[["admin"]]),
        token(tenant="../best"),
        token(tenant=7),
        token(headers={"crit": ["x"], "x": 1}),
        "Bearer " + jwt.encode({"sub": "ann", "aud": "surestep", "exp": time.time() + 60}, "", "none"),
        "Bearer " + token().split(" ")[1].rpartition(".")[0] + ".",
    ],
)
def test_what_is_not_a_good_token_is_refused(header: str | None) -> None:
    """No token, another scheme, a wrong key, audience or time, a claim missing or of another kind: none is believed."""
    with pytest.raises(NotAuthenticated):
        verifier().principal(header)


def test_the_algorithm_is_the_keys_and_not_the_tokens() -> None:
    """A public key is no secret: a token that is signed with its text as if it were one is refused."""
    private = ed25519.Ed25519PrivateKey.generate()
    key = pem(private.public_key())
    believes = verifier(auth_key=key)
    assert believes.principal(token(private, "EdDSA")).name == "ann"
    forged = jwt.utils.base64url_encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + token().split(".")[1].encode()
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(forged, key.encode())
    with pytest.raises(NotAuthenticated):
        believes.principal(f"Bearer {(forged + b'.' + jwt.utils.base64url_encode(signature)).decode()}")
    with pytest.raises(NotAuthenticated):
        verifier().principal(token(private, "EdDSA"))


def test_public_keys_of_three_kinds_are_taken_from_a_file(tmp_path: Path) -> None:
    """Ed25519, P-256 and RSA verify by their own algorithm; a file holds a key as well as a setting does."""
    for private, algorithm in (
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (rsa.generate_private_key(65_537, 2_048), "RS256"),
    ):
        file = tmp_path / "key.pem"
        file.write_text(pem(private.public_key()))
        believes = verifier(auth_key=None, auth_key_file=file)
        assert (believes.algorithm, believes.principal(token(private, algorithm)).roles) == (algorithm, ("support",))


def test_an_issuer_that_is_named_has_to_be_the_tokens() -> None:
    """Where an issuer is set, a token without one is as good as one of another."""
    believes = verifier(auth_issuer="https://id.example.com")
    assert believes.principal(token(iss="https://id.example.com")).name == "ann"
    for iss in (None, "https://evil.example.com"):
        with pytest.raises(NotAuthenticated):
            believes.principal(token(iss=iss))


def test_a_server_of_one_tenant_serves_no_other() -> None:
    """`tenant` is that of a token which names none, and the only one that others may name."""
    believes = verifier(tenant="acme")
    assert believes.principal(token(tenant=None)).tenant == "acme"
    with pytest.raises(NotAuthenticated, match="not served here"):
        believes.principal(token(tenant="best"))
    assert verifier().principal(token(tenant=None)).tenant == ""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"auth_key": None}, "auth_audience is set, and no key"),
        ({"auth_key": None, "auth_audience": None, "auth_issuer": "me"}, "auth_issuer is set, and no key"),
        ({"auth_key": None, "auth_audience": None, "auth_visible_to": "owner"}, "auth_visible_to is set, and no key"),
        ({"auth_audience": None}, "without auth_audience"),
        ({"auth_key": "short"}, "shorter than 32 bytes"),
        ({"auth_key_file": Path("k.pem")}, "set one of them"),
        ({"auth_key": None, "auth_key_file": Path("there is none")}, "cannot be read"),
        ({"auth_key": "-----BEGIN PUBLIC KEY-----\nx"}, "cannot be read as one"),
        ({"auth_key": private_pem(ed25519.Ed25519PrivateKey.generate())}, "is a private key"),
        ({"auth_key": pem(ec.generate_private_key(ec.SECP384R1()).public_key())}, "of a kind that is not taken"),
        ({"auth_key": pem(WEAK.public_key())}, "of a kind that is not taken"),
    ],
)
def test_settings_of_which_half_is_missing_are_an_error(said: dict[str, Any], why: str) -> None:
    """Who has begun to set tokens up is never served without them: no verifier, and so no server, is there."""
    with pytest.raises(ConfigurationError, match=why):
        verifier_from(settings(**said))


def test_nobody_is_asked_where_nothing_is_set() -> None:
    """Without a word about tokens a server works as on a machine of one's own."""
    assert not asks_for_tokens(Settings.load(environment={}))
    assert verifier_from(Settings.load(environment={})) is None


def test_a_public_key_makes_no_tokens() -> None:
    """Tokens are made where the secret is."""
    key = pem(ed25519.Ed25519PrivateKey.generate().public_key())
    with pytest.raises(InvalidInput, match="makes none"):
        made_token(settings(auth_key=key), ANN, 60, time.time())
    with pytest.raises(InvalidInput, match="no tokens are asked for"):
        made_token(Settings.load(environment={}), ANN, 60, time.time())


def test_a_key_is_never_part_of_a_message() -> None:
    """A wrong key is told about without being shown, and is no part of how settings print."""
    assert SECRET not in repr(settings())
    with pytest.raises(ConfigurationError) as told:
        Settings.load(environment={"SURESTEP_AUTH_KEY": SECRET, "SURESTEP_AUTH_VISIBLE_TO": "everybody"})
    assert SECRET not in str(told.value)
