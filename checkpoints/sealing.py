"""Secrets of runs in PostgreSQL, readable with the sealing key alone: who has the database has none of them.

Each is encrypted by itself (AES-256-GCM) and bound to its placeholder. They go when their run is archived or erased.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from checkpoints.database import Database
from checkpoints.queries import QUERIES
from plans.errors import ConfigurationError
from plans.placeholders import Kept

KEY_FILE = "sealing.key"
"""Where a key that nobody has set is kept, in Surestep's folder; readable for its owner only."""
LEAST_KEY = 16
"""Characters that a key has at least."""
_NONCE = 12


@dataclass(frozen=True, slots=True)
class SealingKey:
    """What secrets are encrypted with, and what their hashes are made with: two keys of one."""

    sealing: bytes = field(repr=False)
    hashing: bytes = field(repr=False)

    @classmethod
    def of(cls, folder: Path, given: str | None = None) -> SealingKey:
        """The key that was set; else the one in the folder, made there if need be. Raises ConfigurationError. Reads and
        writes files: not for an event loop."""
        if given is not None and len(given) < LEAST_KEY:
            raise ConfigurationError(f"the sealing key has {len(given)} characters; it needs at least {LEAST_KEY}")
        root = (given or _in_file(folder / KEY_FILE)).encode()
        return cls(*(hmac.new(root, purpose, hashlib.sha256).digest() for purpose in (b"sealing", b"hashing")))


def _in_file(path: Path) -> str:
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            made = path.with_name(f".{KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # of two that come first at once one is, and both read its key
                os.link(made, path)
            made.unlink()
        found = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the sealing key {path} cannot be read or made: {error}; or set one") from None
    if len(found) < LEAST_KEY:
        raise ConfigurationError(f"the sealing key {path} is cut; put it back, or delete it and lose its secrets")
    return found


@dataclass(frozen=True)
class SealedSecrets:
    """The secrets of runs of one database."""

    database: Database
    key: SealingKey

    async def keep(self, run_id: str, kept: Mapping[str, Kept]) -> None:
        """Store secrets for a run, by placeholder, each with its origin; durable when this returns."""
        names = list(kept)
        sealed = [self._sealed(name, kept[name].secret) for name in names]
        origins = [kept[name].origin for name in names]
        given = {"run_id": run_id, "placeholders": names, "sealed": sealed, "origins": origins}
        await self.database.execute(QUERIES["keep_secrets"], given)

    async def read(self, run_id: str, names: Sequence[str]) -> dict[str, Kept]:
        """Those of these placeholders that the run has a secret for, and this key opens."""
        found = await self.database.fetch(QUERIES["secrets_of_run"], {"run_id": run_id, "placeholders": list(names)})
        opened = {row["placeholder"]: (self._opened(row["placeholder"], row["sealed"]), row["origin"]) for row in found}
        return {name: Kept(secret, origin) for name, (secret, origin) in opened.items() if secret is not None}

    async def share(self, run_id: str, names: Sequence[str]) -> None:
        """Let a run have those secrets too, which other runs have stored: it was given a result of theirs."""
        await self.database.execute(QUERIES["share_secrets"], {"run_id": run_id, "placeholders": list(names)})

    async def forget(self, run_id: str) -> None:
        """Delete what was stored for a run that never came to be."""
        await self.database.execute(QUERIES["forget_secrets"], (run_id,))

    def _sealed(self, name: str, secret: str) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE)
        return nonce + AESGCM(self.key.sealing).encrypt(nonce, secret.encode("utf-8", "surrogatepass"), name.encode())

    def _opened(self, name: str, sealed: bytes) -> str | None:
        """None where it was sealed with another key, or was changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            opened = AESGCM(self.key.sealing).decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode())
        except (InvalidTag, ValueError):  # the second for bytes that are too few to be sealed ones
            return None
        return opened.decode("utf-8", "surrogatepass")
