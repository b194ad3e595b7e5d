"""Only types that are named come out of checkpoints. LangGraph reads this when it is first imported, so each way into
Surestep imports this module before it; a program that has imported LangGraph earlier still has our saver's own list."""

from __future__ import annotations

import os

STRICT = "LANGGRAPH_STRICT_MSGPACK"

os.environ[STRICT] = "true"
