"""The roof: wiring, routes, settings and entry points. Imports nothing but what must come before LangGraph."""

from checkpoints import strict  # noqa: F401
