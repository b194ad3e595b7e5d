"""Shared case files: real and hostile inputs with the right answers; skipped without them."""
