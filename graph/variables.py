"""`${NAME}` in a settings file is the environment's variable of that name, so that no secret need stand in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plans.errors import ConfigurationError

_WRITTEN = re.compile(r"\$(\$\{)|\$\{([^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def filled(tables: Mapping[str, Any], environment: Mapping[str, str], file: str) -> dict[str, Any]:
    """The tables with each variable in their texts replaced; `$${` is a literal `${`. Raises ConfigurationError that
    names every variable that is missing or empty, and where it is wanted; values are never repeated."""
    missing: list[str] = []
    done = {name: _filled(value, name, environment, missing) for name, value in tables.items()}
    if missing:
        raise ConfigurationError(f"settings in {file} name variables that are not there: {'; '.join(missing)}")
    return done


def _filled(value: Any, place: str, environment: Mapping[str, str], missing: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item, f"{place}.{key}", environment, missing) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, f"{place}[{index}]", environment, missing) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        if found[1]:
            return "${"
        if not _NAME.fullmatch(found[2]) or not found[0].endswith("}"):
            missing.append(f"{place} has {found[0]!r}, which is no variable ($${{ is a literal ${{)")
        elif not environment.get(found[2]):
            missing.append(f"{place} wants {found[2]}")
        return environment.get(found[2], "")

    return _WRITTEN.sub(replaced, value)
