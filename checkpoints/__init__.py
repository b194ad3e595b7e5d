"""What must survive: the Postgres saver, journal, artifacts, leases, approvals and migrations."""
