"""What must survive: the Postgres saver, journal, artifacts, leases, approvals and migrations."""

from checkpoints import strict  # noqa: F401
