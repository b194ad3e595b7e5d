"""Signed tokens: how a server knows its callers. Verified by a key of the settings, and made by it where it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import ConfigurationError, InvalidInput, NotAuthenticated
from plans.principals import Principal
from plans.values import printable

if TYPE_CHECKING:
    from pathlib import Path

    from graph.settings import Settings

SHORTEST_SECRET = 32
"""Bytes of a secret for HS256: as many as its hash has (RFC 7518, 3.2)."""
SHORTEST_RSA = 2048
LONGEST_TOKEN = 8_192
LEEWAY_S = 10
"""By how much clocks may differ."""
CLAIMS = ["exp", "sub", "aud"]
"""What every token has to say: until when, who, and for whom it was made."""


@dataclass(frozen=True)
class Verifier:
    """Whose tokens are believed. The algorithm follows from the key, never from the token. `tenant` is the only one
    served, "" for all."""

    key: Any
    algorithm: str
    audience: str
    issuer: str | None = None
    tenant: str = ""

    def principal(self, authorization: str | None) -> Principal:
        """Who sends this `Authorization` header. Raises NotAuthenticated, which says what its sender may know."""
        import jwt

        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAuthenticated("a token is needed: Authorization: Bearer …")
        if len(token) > LONGEST_TOKEN:
            raise NotAuthenticated(f"a token has at most {LONGEST_TOKEN:,} characters")
        try:
            claims = jwt.decode(
                token.strip(),
                self.key,
                algorithms=[self.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                leeway=LEEWAY_S,
                options={"require": [*CLAIMS, "iss"] if self.issuer else CLAIMS, "strict_aud": False},
            )
        except jwt.ExpiredSignatureError:
            raise NotAuthenticated("the token has expired; get a new one") from None
        except jwt.PyJWTError:
            raise NotAuthenticated("the token is not one that is valid here") from None
        return self._named(claims)

    def _named(self, claims: dict[str, Any]) -> Principal:
        tenant = claims.get("tenant", self.tenant)
        if self.tenant and tenant != self.tenant:
            raise NotAuthenticated("the token is of a tenant that is not served here")
        roles = claims.get("roles", [])
        if not isinstance(roles, list):
            raise NotAuthenticated("the token's roles are no list of names")
        try:
            return Principal.model_validate({"name": claims["sub"], "roles": roles, "tenant": tenant}, strict=False)
        except ValidationError as error:
            wrong = sorted({str(each["loc"][0]) for each in error.errors(include_url=False)})
            raise NotAuthenticated(f"the token cannot be used: {', '.join(wrong)}") from None


def asks_for_tokens(settings: Settings) -> bool:
    """Whether a server of these settings serves authenticated callers only. Raises ConfigurationError for settings of
    which half is missing: nobody is served then."""
    if settings.auth_key is not None and settings.auth_key_file is not None:
        raise ConfigurationError("auth_key and auth_key_file both say which tokens to believe; set one of them")
    has_key = settings.auth_key is not None or settings.auth_key_file is not None
    others = {
        "auth_audience": settings.auth_audience,
        "auth_issuer": settings.auth_issuer,
        "auth_visible_to": settings.auth_visible_to if settings.auth_visible_to != "tenant" else None,
    }
    if not has_key and (said := [name for name, value in others.items() if value is not None]):
        raise ConfigurationError(
            f"{', '.join(said)} is set, and no key to verify tokens with; set auth_key or auth_key_file too"
        )
    if has_key and not settings.auth_audience:
        raise ConfigurationError(
            "auth_key is set without auth_audience; name this server there, as its tokens do in `aud`"
        )
    return has_key


def verifier_from(settings: Settings) -> Verifier | None:
    """Who verifies tokens as the settings say; None where none are asked for. Reads a file. Raises
    ConfigurationError."""
    if not asks_for_tokens(settings):
        return None
    key, algorithm = _key(key_text(settings))
    return Verifier(key, algorithm, settings.auth_audience or "", settings.auth_issuer, settings.tenant)


def key_text(settings: Settings) -> str:
    """The key as it is written in the settings or their file. Raises ConfigurationError."""
    if settings.auth_key_file is None:
        return settings.auth_key.get_secret_value().strip() if settings.auth_key else ""
    return _read(settings.auth_key_file)


def made_token(settings: Settings, principal: Principal, for_s: float, now: float) -> str:
    """A token for a principal, for so many seconds. Raises InvalidInput where the settings can only verify tokens,
    ConfigurationError where they cannot do that."""
    import jwt

    verifier = verifier_from(settings)
    if verifier is None:
        raise InvalidInput("no tokens are asked for here; set auth_key and auth_audience first")
    if verifier.algorithm != "HS256":
        raise InvalidInput(
            "auth_key is a public key, which verifies tokens and makes none; whoever has the private one makes them"
        )
    claims: dict[str, Any] = {
        "sub": principal.name,
        "roles": list(principal.roles),
        "tenant": principal.tenant,
        "aud": verifier.audience,
        "iat": int(now),
        "exp": int(now + for_s),
    }
    return jwt.encode(claims | ({"iss": verifier.issuer} if verifier.issuer else {}), verifier.key, "HS256")


def _read(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise ConfigurationError(f"auth_key_file {printable(str(file))} cannot be read: {why}") from None


def _key(text: str) -> tuple[Any, str]:
    """A key and the one algorithm that it is for."""
    if not text.startswith("-----BEGIN"):
        if len(text.encode()) < SHORTEST_SECRET:
            raise ConfigurationError(
                f"auth_key is shorter than {SHORTEST_SECRET} bytes; make one such as with `openssl rand -hex 32`"
            )
        return text, "HS256"
    if "PRIVATE KEY" in text:
        raise ConfigurationError("auth_key is a private key; a server verifies tokens by the public one, and is safer")
    try:
        return _public_key(text)
    except ImportError:
        raise ConfigurationError("public keys need the extra: pip install 'surestep[auth]'") from None


def _public_key(text: str) -> tuple[Any, str]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigurationError("auth_key looks like a public key in PEM and cannot be read as one") from None
    match key:
        case ed25519.Ed25519PublicKey():
            return key, "EdDSA"
        case ec.EllipticCurvePublicKey() if key.curve.name == "secp256r1":
            return key, "ES256"
        case rsa.RSAPublicKey() if key.key_size >= SHORTEST_RSA:
            return key, "RS256"
    raise ConfigurationError(
        f"auth_key is a public key of a kind that is not taken; Ed25519, P-256 or RSA of {SHORTEST_RSA} bits or more"
    )
