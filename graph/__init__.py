"""The roof: wiring, routes, settings and entry points. Imports nothing but what must come before LangGraph."""

import surestep  # noqa: F401
