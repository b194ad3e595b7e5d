"""The roof: wiring, routes, settings and entry points. Imports nothing."""
