-- Every SQL statement of this package, by name: `-- name: xyz`, then one statement. Each module has its own section.

-- ---------------------------------------------------------------- migrate

-- name: applied_migrations
SELECT name FROM surestep.migrations;

-- name: record_migration
INSERT INTO surestep.migrations (name) VALUES (%s) ON CONFLICT DO NOTHING;
