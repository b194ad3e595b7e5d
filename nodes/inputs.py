"""A run's inputs: values as they are, files with the size and hash they have at the start."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from nodes.state import InputFile
from plans.errors import InvalidInput
from plans.values import printable, unclean

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


async def declared_inputs(
    given: Mapping[str, Any], root: Path | None, is_flat: bool = False
) -> tuple[dict[str, Any], dict[str, InputFile]]:
    """Values and files. A `Path`, or `{"file": "…"}` from a client, is a file; a client's must lie under `root`, and
    directly in it where it `is_flat`. `{"untrusted": …}` is the value in it (`strange_inputs`). A `SecretStr`, or
    `{"secret": "…"}` from a client, is a secret, and comes out as a SecretStr.

    Raises InvalidInput that names the input, what was found, and what is expected.
    """
    values: dict[str, Any] = {}
    files: dict[str, InputFile] = {}
    for name, value in given.items():
        _check_name(name)
        if isinstance(value, Path):
            files[name] = await asyncio.to_thread(input_file, name, value)
        elif isinstance(value, SecretStr) or is_told_secret(value):
            values[name] = secret_input(name, value)
        elif is_told_strange(value):
            values[name] = _clean(name, value["untrusted"])
        elif isinstance(value, Mapping) and set(value) == {"file"}:
            files[name] = await asyncio.to_thread(_client_file, name, str(value["file"]), root, is_flat)
        else:
            values[name] = _clean(name, value)
    return values, files


def strange_inputs(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the inputs of which is said that a stranger may have written them: `{"untrusted": value}`."""
    return tuple(name for name, value in given.items() if is_told_strange(value))


def is_told_strange(value: Any) -> bool:
    """Whether it is said of an input that a stranger may have written it."""
    return isinstance(value, Mapping) and set(value) == {"untrusted"}


def _clean(name: str, value: Any) -> Any:
    if problem := next(unclean(value), None):
        raise InvalidInput(f"the input {name!r} cannot be stored: {problem[1]}")
    return value


def is_told_secret(value: Any) -> bool:
    """Whether a client says of an input that it is a secret: `{"secret": "…"}`."""
    return isinstance(value, Mapping) and set(value) == {"secret"}


def secret_input(name: str, value: Any) -> SecretStr:
    """A secret input. Raises InvalidInput where it is no text, or none that can be stored."""
    secret = value.get_secret_value() if isinstance(value, SecretStr) else value["secret"]
    if not isinstance(secret, str) or not secret or next(unclean(secret), None):
        raise InvalidInput(f"the input {name!r} is given as a secret and is no text that can be stored")
    return SecretStr(secret)


def input_file(name: str, path: Path) -> InputFile:
    """The file as it is now. Raises InvalidInput where it is missing, a folder, or not readable."""
    try:
        return _as_it_is(name, path)
    except OSError as error:
        raise InvalidInput(f"the input {name!r} cannot be read: {printable(str(path))}: {error.strerror}") from None
    except ValueError:  # NUL, or half a character
        raise InvalidInput(f"the input {name!r} names {printable(str(path))!r}, which can be no file") from None


def _as_it_is(name: str, path: Path) -> InputFile:
    if path.is_dir():
        raise InvalidInput(f"the input {name!r} is the folder {path}; give a file in it")
    if not path.exists():
        raise InvalidInput(f"the input {name!r} names {path}, and there is no such file{_nearby(path)}")
    if not path.is_file():
        raise InvalidInput(f"the input {name!r} names {path}, which is no regular file")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return InputFile(path=str(path.resolve()), size=path.stat().st_size, sha256=digest)


async def changed_files(files: Mapping[str, InputFile]) -> list[str]:
    """Names of input files that are gone or have other bytes than at the start."""
    return [name for name, file in files.items() if await asyncio.to_thread(_changed, name, file)]


def _changed(name: str, file: InputFile) -> bool:
    try:
        return input_file(name, Path(file.path)).sha256 != file.sha256
    except InvalidInput:
        return bool(file.sha256)  # without a hash it was gone when it was last looked at


def _client_file(name: str, path: str, root: Path | None, is_flat: bool) -> InputFile:
    if root is None:
        raise InvalidInput(
            f"the input {name!r} names a file, and this server takes none; set SURESTEP_INPUT_ROOT to the folder "
            "that clients may name files in"
        )
    try:
        real = (root / path).resolve()
    except (OSError, ValueError):
        raise InvalidInput(f"the input {name!r} names {printable(path)!r}, which can be no file") from None
    if not real.is_relative_to(root.resolve()) or (is_flat and real.parent != root.resolve()):
        raise InvalidInput(f"the input {name!r} must lie under this server's input folder")
    return input_file(name, real)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name or not set(name) <= NAME_CHARACTERS or name[0] in "0123456789-":
        raise InvalidInput(f"{name!r} cannot name an input: use letters, digits, _ and -, a letter first")


def _nearby(path: Path) -> str:
    """Up to five files beside it, as a hint."""
    try:
        with os.scandir(path.parent) as beside:
            names = sorted(entry.name for entry in beside if entry.is_file(follow_symlinks=False))[:5]
    except OSError:
        return f" (nor a folder {path.parent})"
    return f"; in {path.parent} there is {', '.join(names)}" if names else ""
