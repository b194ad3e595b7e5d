"""The nodes of the graph, one file each, with the state they read and write. Imports nothing but what must come before
LangGraph."""

import surestep  # noqa: F401
