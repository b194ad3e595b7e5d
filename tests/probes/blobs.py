"""Stored values as somebody with write access to the database could make them: each would call or import something."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
)

Blob = tuple[str, bytes]
SHELL = ("subprocess", "getoutput")


class _Calling:
    """What pickle would call."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.getoutput, (self.command,)


def _packed(code: int, *parts: Any) -> Blob:
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


def _deep(command: str) -> Blob:
    """In the depth of a value, where who looks at the surface finds nothing."""
    within = ormsgpack.Ext(EXT_CONSTRUCTOR_POS_ARGS, ormsgpack.packb((*SHELL, [command])))
    return "msgpack", ormsgpack.packb({"a": [{"b": within}]})


def _json(version: int, **more: Any) -> Blob:
    return "json", json.dumps({"lc": version, "type": "constructor", **more}).encode()


def _template(command: str) -> Blob:
    """LangChain's own reader makes its own classes; this one holds a template that is evaluated."""
    said = {"template": "{{ x }}", "template_format": "jinja2", "partial_variables": {"x": command}}
    return _json(1, id=["langchain_core", "prompts", "prompt", "PromptTemplate"], kwargs=said)


BLOBS: dict[str, Callable[[str], Blob]] = {
    "one argument": lambda does: _packed(EXT_CONSTRUCTOR_SINGLE_ARG, *SHELL, does),
    "arguments": lambda does: _packed(EXT_CONSTRUCTOR_POS_ARGS, *SHELL, [does]),
    "names": lambda does: _packed(EXT_CONSTRUCTOR_KW_ARGS, *SHELL, {"cmd": does}),
    "a method": lambda does: _packed(EXT_METHOD_SINGLE_ARG, "subprocess", "Popen", does, "__new__"),
    "pydantic 1": lambda does: _packed(EXT_PYDANTIC_V1, *SHELL, {"cmd": does}),
    "pydantic 2": lambda does: _packed(EXT_PYDANTIC_V2, *SHELL, {"cmd": does}, "__call__"),
    "an import": lambda _: _packed(EXT_CONSTRUCTOR_POS_ARGS, "planted", "Thing", []),
    "ours, and not of the state": lambda does: _packed(
        EXT_CONSTRUCTOR_SINGLE_ARG, "checkpoints.embedded", "EmbeddedServer", does
    ),
    "in the depth": _deep,
    "pickle": lambda does: ("pickle", pickle.dumps(_Calling(does))),
    "json": lambda does: _json(2, id=list(SHELL), args=[does]),
    "json of LangChain": _template,
    "json of a secret": lambda _: ("json", b'{"lc": 1, "type": "secret", "id": ["PATH"]}'),
    "no value": lambda _: ("msgpack", b"\xc1\xff\x00"),
    "nothing": lambda _: ("msgpack", b""),
    "no form": lambda does: ("'; DROP TABLE checkpoints; --", does.encode()),
}
"""By name: what a shell command is made into."""
ODD: dict[str, Blob] = {
    "names that are none": _packed(EXT_CONSTRUCTOR_SINGLE_ARG, ["subprocess"], {"a": 1}, "x"),
    "an array": _packed(EXT_NUMPY_ARRAY, "|O", [1], "C", b"12345678"),
    "a number": ("msgpack", ormsgpack.packb(7)),
    "bytes": ("bytes", b"x"),
}
"""Values that can be read and are not what stood there."""
