"""Tests of measuring: evaluators and experiments."""
