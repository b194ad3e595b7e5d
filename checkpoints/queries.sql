-- Every SQL statement of this package, by name: `-- name: xyz`, then one statement. Each module has its own section.

-- ---------------------------------------------------------------- migrate

-- name: applied_migrations
SELECT name FROM surestep.migrations;

-- name: record_migration
INSERT INTO surestep.migrations (name) VALUES (%s) ON CONFLICT DO NOTHING;

-- name: migration_lock_settings
SET LOCAL idle_in_transaction_session_timeout = 0;

-- name: try_migration_lock
-- The number is arbitrary and must never change: by it two versions of us keep out of each other's way.
SELECT pg_try_advisory_xact_lock(7283119002645831);
