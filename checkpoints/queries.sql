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

-- ---------------------------------------------------------------- saver

-- name: copy_thread
-- One statement sees one moment: nothing that is saved meanwhile is copied by half.
WITH heads AS (
    INSERT INTO checkpoints (
        thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    )
    SELECT
        %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
        CASE WHEN metadata ? 'thread_id' THEN metadata || jsonb_build_object('thread_id', %(target)s::text)
            ELSE metadata END
    FROM checkpoints WHERE thread_id = %(source)s
    ON CONFLICT DO NOTHING
), blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(target)s, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = %(source)s
    ON CONFLICT DO NOTHING
)
INSERT INTO checkpoint_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
)
SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
FROM checkpoint_writes WHERE thread_id = %(source)s
ON CONFLICT DO NOTHING;

-- name: delete_checkpoints_of_runs
-- A blob goes with the last checkpoint that refers to it.
WITH gone AS (
    DELETE FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%(run_ids)s)
    RETURNING thread_id, checkpoint_ns, checkpoint_id, checkpoint -> 'channel_versions' AS versions
), gone_writes AS (
    DELETE FROM checkpoint_writes w USING gone g
    WHERE (w.thread_id, w.checkpoint_ns, w.checkpoint_id) = (g.thread_id, g.checkpoint_ns, g.checkpoint_id)
), unused AS (
    SELECT g.thread_id, g.checkpoint_ns, v.key AS channel, v.value AS version
    FROM gone g CROSS JOIN LATERAL jsonb_each_text(g.versions) v
    EXCEPT
    SELECT c.thread_id, c.checkpoint_ns, v.key, v.value
    FROM checkpoints c CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v
    WHERE c.thread_id IN (SELECT thread_id FROM gone)
        AND (c.metadata ->> 'run_id' = ANY(%(run_ids)s)) IS NOT TRUE
)
DELETE FROM checkpoint_blobs b USING unused u
WHERE (b.thread_id, b.checkpoint_ns, b.channel, b.version) = (u.thread_id, u.checkpoint_ns, u.channel, u.version);

-- ---------------------------------------------------------------- artifacts

-- name: record_artifact
INSERT INTO surestep.artifacts (run_id, output_ref, sha256, size, media_type, body, location)
VALUES (%(run_id)s, %(output_ref)s, %(sha256)s, %(size)s, %(media_type)s, %(body)s, %(location)s)
ON CONFLICT (run_id, output_ref) DO NOTHING;

-- name: artifact
SELECT sha256, body FROM surestep.artifacts WHERE run_id = %s AND output_ref = %s;
