"""What must survive: the Postgres saver, journal, artifacts, leases, approvals and migrations."""

import surestep  # noqa: F401
