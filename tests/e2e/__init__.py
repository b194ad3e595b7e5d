"""Whole programs: servers and command lines as child processes."""
