"""The tests mirror the tree: tests/tools holds the tests of tools."""
