"""The nodes of the graph, one file each, with the state they read and write. Imports nothing but what must come before
LangGraph."""

from checkpoints import strict  # noqa: F401
