"""How fast Surestep is, side by side with others on the same machine in the same minutes: `python -m bench`."""
