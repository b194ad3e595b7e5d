"""Tests of the bench: that it runs what it says and counts right, never how fast anything was."""
