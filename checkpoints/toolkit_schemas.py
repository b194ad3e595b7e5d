"""The tables that toolkits bring along: each script runs once per database and content, one process at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from checkpoints.queries import QUERIES
from plans.errors import ConfigurationError

if TYPE_CHECKING:
    from checkpoints.database import Database


async def apply_schemas(database: Database, scripts: Mapping[str, str]) -> list[str]:
    """Run the scripts that this database has not run yet; `scripts` maps a toolkit's name to "package:file.sql".

    Gives the names of the toolkits whose script ran. A script and the note that it ran commit together.
    """
    texts = {name: await asyncio.to_thread(_read, reference) for name, reference in scripts.items()}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    known = {(row["toolkit"], row["sha256"]) for row in await database.fetch(QUERIES["toolkit_schemas"])}
    missing = [name for name in texts if (name, digests[name]) not in known]
    return [name for name in missing if await _apply(database, name, texts[name], digests[name])]


async def _apply(database: Database, name: str, text: str, digest: str) -> bool:
    async with database.pool.connection() as connection, connection.transaction():
        await connection.execute(QUERIES["lock_toolkit_schemas"])
        cursor = await connection.execute(QUERIES["note_toolkit_schema"], {"toolkit": name, "sha256": digest})
        if cursor.rowcount:
            await connection.execute(text.encode())
        return bool(cursor.rowcount)


def _read(reference: str) -> str:
    package, _, name = reference.partition(":")
    try:
        return files(package).joinpath(name).read_text("utf-8")
    except (ModuleNotFoundError, FileNotFoundError, OSError) as error:
        raise ConfigurationError(
            f"a toolkit names the SQL script {reference!r}, which cannot be read ({error}); "
            'write it as "package:file.sql" and ship the file with the package'
        ) from None
