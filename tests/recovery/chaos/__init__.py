"""Every commit point, random moments and bad luck with the database and the disk: `python -m tests.recovery.chaos`."""
