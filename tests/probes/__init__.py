"""Probes: what an attacker would try on every parameter, address and stored byte, and what must be unchanged after."""
