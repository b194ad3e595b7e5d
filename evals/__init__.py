"""Datasets, evaluators and experiments that measure planning."""
