"""Tests of the roof: the graph, its gateway, settings and command line."""
