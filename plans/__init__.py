"""The floor: what a plan is. Pure values and functions; no I/O, no clock."""
