"""Databases as released versions of Surestep left them, and the program that makes one of them."""
