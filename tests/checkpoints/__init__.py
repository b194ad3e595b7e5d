"""Tests of what must survive."""
