"""Where the database is, for those who come in by a door that passes no settings (the saver in `langgraph.json`).

`graph/settings.py` reads everything else, and reads the file and the environment through `read_values` too, so that
every door finds the same database.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plans.errors import ConfigurationError
from plans.wording import kind_of

SETTINGS_FILE = Path("surestep.toml")
DEFAULT_FOLDER = Path(".surestep")


@dataclass(frozen=True)
class Location:
    """`database_url` None means the embedded server, with its files below `folder`."""

    database_url: str | None = None
    folder: Path = DEFAULT_FOLDER
    sealing_key: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Location:
        """The location that the settings file and the environment name. Reads a file: not for an event loop."""
        values = read_values(("database_url", "folder", "sealing_key"), file, environment)
        for name, value in values.items():
            if not isinstance(value, str):
                raise ConfigurationError(
                    f"{name} must be text in quotes, and is {kind_of(value)} in {file or SETTINGS_FILE}"
                )
        folder = Path(values.get("folder", DEFAULT_FOLDER))
        return cls(values.get("database_url"), folder, values.get("sealing_key"))


def read_values(
    names: Collection[str], file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """What is said about `names`: `SURESTEP_<NAME>` in the environment, else `name = ...` at the top of the file.

    An empty variable says nothing. Without `file`, `surestep.toml` in the working directory is read if there is one.
    ConfigurationError when the file is missing although named, or cannot be read.
    """
    said = read_file(file)
    for name in names:
        if value := environment.get(f"SURESTEP_{name.upper()}"):
            said[name] = value
    return {name: said[name] for name in names if name in said}


def read_file(file: Path | None) -> dict[str, Any]:
    """All that the settings file says; nothing where it is the default one and not there. Raises ConfigurationError."""
    try:
        return tomllib.loads((file or SETTINGS_FILE).read_text("utf-8"))
    except FileNotFoundError as error:
        if file is None:
            return {}
        raise ConfigurationError(f"the settings file {file} does not exist") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"the settings file {file or SETTINGS_FILE} cannot be read: {error}") from error
