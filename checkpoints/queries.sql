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

-- name: save_checkpoints
-- Rule 5: the lease rows are locked first, in the journal's order, and each save is judged by what they say then. A fence
-- counts whoever owns the lease now, or nobody: LangGraph saves the last checkpoint of a drive when the run has been let
-- go. Of several runs of a thread only the latest that was ever driven may write.
WITH op AS (
    SELECT * FROM unnest(
        %(thread_id)b::text[], %(namespace)b::text[], %(onto)b::text[], %(run_id)b::text[], %(fence)s::bigint[],
        %(only_onto_newest)s::boolean[]
    ) WITH ORDINALITY AS o (thread_id, namespace, onto, run_id, fence, only_onto_newest, op)
), held AS MATERIALIZED (
    SELECT l.run_id, l.fence, CASE WHEN l.expires_at > clock_timestamp() THEN l.owner END AS owner
    FROM surestep.leases l
    WHERE l.run_id = ANY (ARRAY(
        SELECT run_id FROM op WHERE run_id IS NOT NULL
        UNION
        SELECT r.run_id FROM op JOIN surestep.runs r USING (thread_id) WHERE op.run_id IS NULL
    ))
    ORDER BY l.run_id FOR SHARE
), judged AS MATERIALIZED (
    SELECT op.op, op.thread_id, op.namespace, living.run_id AS owned_run, living.owner,
        CASE
            WHEN op.run_id IS NULL AND living.run_id IS NOT NULL THEN 'busy'
            WHEN op.run_id IS NOT NULL AND (
                held.run_id IS NULL OR EXISTS (
                    SELECT FROM surestep.runs own JOIN surestep.runs later USING (thread_id)
                    JOIN surestep.leases lease ON lease.run_id = later.run_id
                    WHERE own.run_id = op.run_id AND lease.fence > 0
                        AND (later.created_at, later.run_id) > (own.created_at, own.run_id)
                )
            ) THEN 'stale'
            WHEN op.only_onto_newest AND op.onto IS DISTINCT FROM (
                SELECT max(c.checkpoint_id) FROM checkpoints c
                WHERE c.thread_id = op.thread_id AND c.checkpoint_ns = op.namespace
            ) THEN 'stale'
            ELSE 'accepted'
        END AS verdict
    FROM op
    LEFT JOIN held ON held.run_id = op.run_id AND held.fence = op.fence
    LEFT JOIN LATERAL (
        SELECT h.run_id, h.owner FROM held h JOIN surestep.runs r USING (run_id)
        WHERE op.run_id IS NULL AND r.thread_id = op.thread_id AND h.owner IS NOT NULL LIMIT 1
    ) living ON true
), accepted AS MATERIALIZED (
    SELECT op, thread_id, namespace FROM judged WHERE verdict = 'accepted'
), puts AS (
    INSERT INTO checkpoints (
        thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata
    )
    SELECT thread_id, namespace, checkpoint_id, parent_id, checkpoint::jsonb, metadata::jsonb
    FROM unnest(
        %(put_op)s::bigint[], %(put_checkpoint_id)b::text[], %(put_parent_id)b::text[], %(put_checkpoint)b::text[],
        %(put_metadata)b::text[]
    ) AS p (op, checkpoint_id, parent_id, checkpoint, metadata) JOIN accepted USING (op)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata
), blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT thread_id, namespace, channel, version, type, blob
    FROM unnest(
        %(blob_op)s::bigint[], %(blob_channel)b::text[], %(blob_version)b::text[], %(blob_type)b::text[],
        %(blob_blob)b::bytea[]
    ) AS b (op, channel, version, type, blob) JOIN accepted USING (op)
    ON CONFLICT DO NOTHING
), first_writes AS (
    INSERT INTO checkpoint_writes (
        thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    )
    SELECT thread_id, namespace, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM unnest(
        %(first_op)s::bigint[], %(first_checkpoint_id)b::text[], %(first_task_id)b::text[],
        %(first_task_path)b::text[], %(first_idx)s::integer[], %(first_channel)b::text[], %(first_type)b::text[],
        %(first_blob)b::bytea[]
    ) AS w (op, checkpoint_id, task_id, task_path, idx, channel, type, blob) JOIN accepted USING (op)
    ON CONFLICT DO NOTHING
), last_writes AS (
    INSERT INTO checkpoint_writes (
        thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    )
    SELECT thread_id, namespace, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM unnest(
        %(last_op)s::bigint[], %(last_checkpoint_id)b::text[], %(last_task_id)b::text[],
        %(last_task_path)b::text[], %(last_idx)s::integer[], %(last_channel)b::text[], %(last_type)b::text[],
        %(last_blob)b::bytea[]
    ) AS w (op, checkpoint_id, task_id, task_path, idx, channel, type, blob) JOIN accepted USING (op)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    DO UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob
)
SELECT verdict, owner, owned_run FROM judged ORDER BY op;

-- name: lock_threads
-- Of everyone who has a run on these threads: saves that are on their way end first, later ones see what follows here.
SELECT FROM surestep.leases
WHERE run_id = ANY (ARRAY(SELECT run_id FROM surestep.runs WHERE thread_id = ANY (%(thread_ids)s::text[])))
ORDER BY run_id FOR NO KEY UPDATE;

-- name: copy_thread
-- One statement sees one moment: nothing that is saved meanwhile is copied by half.
WITH busy AS MATERIALIZED (
    SELECT r.thread_id, l.run_id, l.owner FROM surestep.runs r JOIN surestep.leases l USING (run_id)
    WHERE r.thread_id = ANY (%(thread_ids)s::text[]) AND l.owner IS NOT NULL AND l.expires_at > clock_timestamp()
        AND (l.run_id, l.fence) NOT IN (SELECT * FROM unnest(%(own_runs)s::text[], %(own_fences)s::bigint[]))
    LIMIT 1
), heads AS (
    INSERT INTO checkpoints (
        thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    )
    SELECT
        %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
        CASE WHEN metadata ? 'thread_id' THEN metadata || jsonb_build_object('thread_id', %(target)s::text)
            ELSE metadata END
    FROM checkpoints WHERE thread_id = %(source)s AND NOT EXISTS (SELECT FROM busy)
    ON CONFLICT DO NOTHING
), blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(target)s, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = %(source)s AND NOT EXISTS (SELECT FROM busy)
    ON CONFLICT DO NOTHING
), writes AS (
    INSERT INTO checkpoint_writes (
        thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    )
    SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %(source)s AND NOT EXISTS (SELECT FROM busy)
    ON CONFLICT DO NOTHING
)
SELECT * FROM busy;

-- name: delete_threads
WITH busy AS MATERIALIZED (
    SELECT r.thread_id, l.run_id, l.owner FROM surestep.runs r JOIN surestep.leases l USING (run_id)
    WHERE r.thread_id = ANY (%(thread_ids)s::text[]) AND l.owner IS NOT NULL AND l.expires_at > clock_timestamp()
        AND (l.run_id, l.fence) NOT IN (SELECT * FROM unnest(%(own_runs)s::text[], %(own_fences)s::bigint[]))
    LIMIT 1
), heads AS (
    DELETE FROM checkpoints WHERE thread_id = ANY (%(thread_ids)s::text[]) AND NOT EXISTS (SELECT FROM busy)
), blobs AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = ANY (%(thread_ids)s::text[]) AND NOT EXISTS (SELECT FROM busy)
), writes AS (
    DELETE FROM checkpoint_writes WHERE thread_id = ANY (%(thread_ids)s::text[]) AND NOT EXISTS (SELECT FROM busy)
)
SELECT * FROM busy;

-- name: driven_by_others
WITH busy AS MATERIALIZED (
    SELECT r.thread_id, l.run_id, l.owner FROM surestep.runs r JOIN surestep.leases l USING (run_id)
    WHERE r.thread_id = ANY (%(thread_ids)s::text[]) AND l.owner IS NOT NULL AND l.expires_at > clock_timestamp()
        AND (l.run_id, l.fence) NOT IN (SELECT * FROM unnest(%(own_runs)s::text[], %(own_fences)s::bigint[]))
    LIMIT 1
)
SELECT * FROM busy;

-- name: threads_of_runs
SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY (%(run_ids)s);

-- name: delete_checkpoints_of_runs
-- A blob goes with the last checkpoint that refers to it.
WITH busy AS MATERIALIZED (
    SELECT r.thread_id, l.run_id, l.owner FROM surestep.runs r JOIN surestep.leases l USING (run_id)
    WHERE r.thread_id = ANY (%(thread_ids)s::text[]) AND l.owner IS NOT NULL AND l.expires_at > clock_timestamp()
        AND (l.run_id, l.fence) NOT IN (SELECT * FROM unnest(%(own_runs)s::text[], %(own_fences)s::bigint[]))
    LIMIT 1
), gone AS (
    DELETE FROM checkpoints
    WHERE thread_id = ANY (%(thread_ids)s::text[]) AND metadata ->> 'run_id' = ANY (%(run_ids)s)
        AND NOT EXISTS (SELECT FROM busy)
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
), unused_blobs AS (
    DELETE FROM checkpoint_blobs b USING unused u
    WHERE (b.thread_id, b.checkpoint_ns, b.channel, b.version) = (u.thread_id, u.checkpoint_ns, u.channel, u.version)
)
SELECT * FROM busy;

-- ---------------------------------------------------------------- artifacts

-- name: record_artifact
INSERT INTO surestep.artifacts (run_id, output_ref, sha256, size, media_type, body, location)
VALUES (%(run_id)s, %(output_ref)s, %(sha256)s, %(size)s, %(media_type)s, %(body)s, %(location)s)
ON CONFLICT (run_id, output_ref) DO NOTHING;

-- name: artifacts_among
SELECT output_ref FROM surestep.artifacts WHERE run_id = %s AND output_ref = ANY (%s);

-- name: artifact
SELECT sha256, body FROM surestep.artifacts WHERE run_id = %s AND output_ref = %s;

-- ---------------------------------------------------------------- journal

-- name: append_rows
-- Rule 1: the locks come before the insert, in one order, and the fence is read as it is once they are held.
-- Rule 2: DO UPDATE with equal content changes nothing, and is how a row that was sent before is seen, committed or not.
WITH given AS (
    SELECT * FROM unnest(
        %(run_id)b::text[], %(fence)s::bigint[], %(n)s::bigint[], %(kind)b::text[], %(step_id)b::text[],
        %(attempt)s::integer[], %(body)b::text[]
    ) AS g (run_id, fence, n, kind, step_id, attempt, body)
), held AS MATERIALIZED (
    SELECT run_id, fence, cancel_requested FROM surestep.leases
    WHERE run_id = ANY (%(run_id)b::text[]) AND owner IS NOT NULL
    ORDER BY run_id FOR SHARE
), stored AS (
    INSERT INTO surestep.artifacts (run_id, output_ref, sha256, size, media_type, body)
    SELECT run_id, output_ref, sha256, octet_length(content), media_type, content
    FROM unnest(
        %(artifact_run_id)b::text[], %(artifact_fence)s::bigint[], %(artifact_output_ref)b::text[],
        %(artifact_sha256)b::text[], %(artifact_media_type)b::text[], %(artifact_content)b::bytea[]
    ) AS a (run_id, fence, output_ref, sha256, media_type, content)
    JOIN held USING (run_id, fence)
    ON CONFLICT DO NOTHING
), added AS (
    INSERT INTO surestep.journal AS j (run_id, fence, n, kind, step_id, attempt, body)
    SELECT run_id, fence, n, kind, step_id, attempt, body::jsonb FROM given JOIN held USING (run_id, fence)
    ON CONFLICT (run_id, fence, n) DO UPDATE SET kind = j.kind
    WHERE (j.kind, j.step_id, j.attempt, j.body)
        IS NOT DISTINCT FROM (excluded.kind, excluded.step_id, excluded.attempt, excluded.body)
    RETURNING run_id, fence, n
)
SELECT run_id, fence, n, coalesce(held.cancel_requested, false) AS cancel_requested,
    CASE WHEN held.run_id IS NULL THEN 'stale' WHEN added.n IS NULL THEN 'clash' ELSE 'accepted' END AS verdict
FROM given LEFT JOIN held USING (run_id, fence) LEFT JOIN added USING (run_id, fence, n);

-- name: append_row
-- Rule 9: one row, inside a transaction that keeps the lease's lock until it ends.
WITH held AS (
    SELECT run_id FROM surestep.leases
    WHERE run_id = %(run_id)s AND fence = %(fence)s AND owner IS NOT NULL FOR SHARE
), stored AS (
    INSERT INTO surestep.artifacts (run_id, output_ref, sha256, size, media_type, body)
    SELECT run_id, %(output_ref)s::text, %(sha256)s::text, octet_length(%(content)s::bytea), %(media_type)s::text,
        %(content)s::bytea
    FROM held WHERE %(output_ref)s::text IS NOT NULL
    ON CONFLICT DO NOTHING
)
INSERT INTO surestep.journal AS j (run_id, fence, n, kind, step_id, attempt, body)
SELECT run_id, %(fence)s::bigint, %(n)s::bigint, %(kind)s::text, %(step_id)s::text, %(attempt)s::integer,
    %(body)s::jsonb
FROM held
ON CONFLICT (run_id, fence, n) DO UPDATE SET kind = j.kind
WHERE (j.kind, j.step_id, j.attempt, j.body)
    IS NOT DISTINCT FROM (excluded.kind, excluded.step_id, excluded.attempt, excluded.body)
RETURNING n;

-- name: read_journal
SELECT run_id, fence, n, kind, step_id, attempt, body, at FROM surestep.journal WHERE run_id = %s ORDER BY fence, n;

-- name: find_row
SELECT run_id, fence, n, kind, step_id, attempt, body, at FROM surestep.journal
WHERE run_id = %s AND fence = %s AND n = %s;

-- name: lock_lease
SELECT fence FROM surestep.leases WHERE run_id = %s FOR UPDATE;

-- ---------------------------------------------------------------- planning

-- name: planner_records
-- A question has cost what its answers and failures say, and what was reserved wherever neither follows: whoever asked
-- has died then.
WITH drafts AS (
    SELECT DISTINCT ON (run_id, body ->> 'name') run_id, body FROM surestep.journal
    WHERE kind = 'draft' AND at >= coalesce(%(since)s::timestamptz, '-infinity')
        AND (%(tenant)s::text IS NULL OR run_id IN (
            SELECT run_id FROM surestep.runs WHERE tenant = %(tenant)s::text
        ))
    ORDER BY run_id, body ->> 'name', fence, n
), billed AS (
    SELECT j.run_id, j.body ->> 'key' AS question, j.kind, j.body,
        lead(j.kind) OVER (PARTITION BY j.run_id, j.body ->> 'key' ORDER BY j.fence, j.n) AS followed_by
    FROM surestep.journal j
    WHERE j.kind IN ('reservation', 'model')
        AND (j.run_id, j.body ->> 'key') IN (SELECT run_id, body ->> 'question' FROM drafts)
), bills AS (
    SELECT run_id, question, sum((body ->> 'prompt_tokens')::bigint) AS prompt_tokens,
        sum((body ->> 'completion_tokens')::bigint) AS completion_tokens,
        sum(coalesce((body ->> 'estimated_tokens')::bigint, 0)) AS estimated_tokens,
        sum(coalesce((body ->> 'cost')::float8, 0)) AS cost
    FROM billed WHERE kind = 'model' OR followed_by IS DISTINCT FROM 'model'
    GROUP BY run_id, question
), judged AS (
    SELECT run_id, body ->> 'question' AS question, body ->> 'model' AS model, body ->> 'prompt_sha256' AS prompt_sha256,
        body ->> 'mode' AS mode, body ->> 'source' AS source, (body ->> 'try')::integer AS try,
        (body ->> 'valid')::boolean AS valid, (body ->> 'repaired')::boolean AS repaired
    FROM drafts
)
SELECT model, prompt_sha256, mode, source,
    count(*) FILTER (WHERE try = 0) AS asked,
    count(*) FILTER (WHERE try = 0 AND valid) AS at_first,
    count(*) FILTER (WHERE try > 0) AS redrafts,
    count(*) FILTER (WHERE NOT valid) AS refused,
    count(*) FILTER (WHERE repaired) AS repaired,
    coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
    coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens,
    coalesce(sum(estimated_tokens), 0)::bigint AS estimated_tokens,
    coalesce(sum(cost), 0)::float8 AS cost
FROM judged LEFT JOIN bills USING (run_id, question)
GROUP BY model, prompt_sha256, mode, source
ORDER BY model NULLS FIRST, prompt_sha256, mode, source;

-- name: older_forms
-- Plans that a worker has read in an older version than they were written in.
SELECT (body ->> 'written')::integer AS written, (body ->> 'read')::integer AS read, count(DISTINCT run_id) AS runs,
    max(at) AS last
FROM surestep.journal WHERE kind = 'older_form'
GROUP BY 1, 2 ORDER BY 1, 2;

-- ---------------------------------------------------------------- leases

-- name: own_session
SELECT pid AS backend_pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid();

-- name: listen_for_cancel
LISTEN surestep_cancel;

-- name: listen_for_instructions
LISTEN surestep_instruction;

-- name: acquire_lease
-- Free is a lease without owner, one that has expired, one of this very session whose answer was lost, and one whose
-- session is gone. A start of the server ends all sessions, so for one lease length after it that says nothing about a
-- session from before. The start time of another role's session can be hidden; then its process number alone counts as
-- living. `dead_worker` is one of which the caller knows that it does nothing any more.
WITH free AS (
    SELECT run_id, owner FROM surestep.leases l
    WHERE run_id = %(run_id)s AND (
        owner IS NULL
        OR expires_at <= clock_timestamp()
        OR worker = %(dead_worker)s::text
        OR (backend_pid = %(backend_pid)s AND backend_start = %(backend_start)s)
        OR (
            (
                l.backend_start >= pg_postmaster_start_time()
                OR pg_postmaster_start_time() + make_interval(secs => %(length_s)s) < clock_timestamp()
            )
            AND NOT EXISTS (
                SELECT FROM pg_stat_activity a
                WHERE a.pid = l.backend_pid AND (a.backend_start IS NULL OR a.backend_start = l.backend_start)
            )
        )
    )
    FOR NO KEY UPDATE
)
UPDATE surestep.leases l
SET fence = l.fence + 1, owner = %(owner)s, worker = %(worker)s, backend_pid = %(backend_pid)s, backend_start = %(backend_start)s,
    expires_at = clock_timestamp() + make_interval(secs => %(length_s)s)
FROM free WHERE l.run_id = free.run_id
RETURNING l.fence, l.cancel_requested, free.owner AS taken_from,
    extract(epoch FROM l.expires_at)::float8 AS expires_at, extract(epoch FROM clock_timestamp())::float8 AS taken_at;

-- name: lease_state
SELECT owner, worker, extract(epoch FROM expires_at - clock_timestamp())::float8 AS left_s, cancel_requested
FROM surestep.leases WHERE run_id = %(run_id)s;

-- name: renew_leases
-- Rows are locked in the order in which the journal locks them: two statements that want several never wait in a ring.
WITH held AS (
    SELECT l.run_id, l.fence
    FROM surestep.leases l JOIN unnest(%(run_id)s::text[], %(fence)s::bigint[]) AS h (run_id, fence) USING (run_id, fence)
    WHERE l.owner IS NOT NULL
    ORDER BY l.run_id FOR NO KEY UPDATE OF l
)
UPDATE surestep.leases l
SET expires_at = clock_timestamp() + make_interval(secs => %(length_s)s),
    backend_pid = %(backend_pid)s, backend_start = %(backend_start)s
FROM held WHERE l.run_id = held.run_id
RETURNING l.run_id, l.fence, l.cancel_requested, extract(epoch FROM l.expires_at)::float8 AS expires_at;

-- name: release_lease
-- Rule 20: FOR SHARE reads an approval as it is after any decision under way, whatever this statement's snapshot says.
WITH held AS (
    SELECT run_id FROM surestep.leases
    WHERE run_id = %(run_id)s AND fence = %(fence)s AND owner IS NOT NULL FOR NO KEY UPDATE
), listed AS MATERIALIZED (
    SELECT status <> 'pending' OR expires_at <= clock_timestamp() AS answered
    FROM surestep.approvals WHERE approval_id = ANY (%(unless_decided)s::text[]) FOR SHARE
), let_go AS (
    UPDATE surestep.leases l SET owner = NULL, backend_pid = NULL, backend_start = NULL, expires_at = NULL
    FROM held WHERE l.run_id = held.run_id AND NOT EXISTS (SELECT FROM listed WHERE answered)
    RETURNING l.run_id
)
SELECT EXISTS (SELECT FROM let_go) AS released FROM held;

-- name: request_cancel
WITH asked AS (
    UPDATE surestep.leases SET cancel_requested = true WHERE run_id = %(run_id)s
    RETURNING run_id, CASE WHEN expires_at > clock_timestamp() THEN owner END AS owner
)
SELECT owner, pg_notify('surestep_cancel', run_id) FROM asked;

-- ---------------------------------------------------------------- instructions

-- name: send_instruction
-- A run that has ended takes none. Sent twice it is stored once; the driver is told each time.
WITH going_on AS (
    SELECT run_id FROM surestep.runs WHERE run_id = %(run_id)s AND status IN ('running', 'paused', 'limited')
), sent AS (
    INSERT INTO surestep.instructions (run_id, instruction_id, message, said_by)
    SELECT run_id, %(instruction_id)s, %(message)s, %(said_by)s::jsonb FROM going_on
    ON CONFLICT (run_id, instruction_id) DO NOTHING
)
SELECT run_id, pg_notify('surestep_instruction', run_id) FROM going_on;

-- name: instructions_of_run
SELECT instruction_id, message, said_by FROM surestep.instructions
WHERE run_id = %(run_id)s AND taken_at IS NULL ORDER BY sent_at, instruction_id;

-- name: take_instructions
UPDATE surestep.instructions SET taken_at = clock_timestamp()
WHERE run_id = %(run_id)s AND instruction_id = ANY (%(ids)s::text[]);

-- ---------------------------------------------------------------- runs

-- name: create_run
-- A thread has one open run, and one tenant: where it has a run already that is either, nothing is stored.
WITH thread AS MATERIALIZED (
    SELECT surestep.run_in_the_way(%(thread_id)s, %(tenant)s) AS in_the_way
), created AS (
    INSERT INTO surestep.runs (run_id, thread_id, tenant, request_id, goal, input, input_sha256, status, summary)
    SELECT
        %(run_id)s, %(thread_id)s, %(tenant)s, %(request_id)s, %(goal)s, %(input)s::jsonb, %(input_sha256)s, %(status)s,
        %(summary)s::jsonb
    FROM thread WHERE in_the_way IS NULL
    ON CONFLICT (tenant, request_id) DO NOTHING
    RETURNING *
), leased AS (
    INSERT INTO surestep.leases (run_id) SELECT run_id FROM created
)
SELECT * FROM created;

-- name: create_fork
-- Rule 18: the run, its first rows and its references to the parent's results are one statement: all of it or nothing.
-- The rows have the fence that nobody has ever held. A file is referred to by its place, a small body is copied.
WITH thread AS MATERIALIZED (
    SELECT surestep.run_in_the_way(%(thread_id)s, %(tenant)s) AS in_the_way
), created AS (
    INSERT INTO surestep.runs (
        run_id, thread_id, tenant, request_id, goal, input, input_sha256, status, summary, forked_from
    )
    SELECT
        %(run_id)s, %(thread_id)s, %(tenant)s, %(request_id)s, %(goal)s, %(input)s::jsonb, %(input_sha256)s, %(status)s,
        %(summary)s::jsonb, %(forked_from)s
    FROM thread WHERE in_the_way IS NULL
    ON CONFLICT (tenant, request_id) DO NOTHING
    RETURNING *
), leased AS (
    INSERT INTO surestep.leases (run_id) SELECT run_id FROM created
), held AS (
    INSERT INTO surestep.artifacts (run_id, output_ref, sha256, size, media_type, body, location)
    SELECT c.run_id, a.output_ref, a.sha256, a.size, a.media_type, a.body, a.location
    FROM created c JOIN surestep.artifacts a ON a.run_id = c.forked_from
    WHERE a.output_ref = ANY (%(output_refs)s::text[])
), unsealed AS (
    INSERT INTO surestep.secrets (run_id, placeholder, sealed, origin)
    SELECT c.run_id, s.placeholder, s.sealed, s.origin
    FROM created c JOIN surestep.secrets s ON s.run_id = c.forked_from
), written AS (
    INSERT INTO surestep.journal (run_id, fence, n, kind, attempt, body)
    SELECT c.run_id, 0, g.n, g.kind, 0, g.body::jsonb
    FROM created c, unnest(%(n)s::bigint[], %(kind)s::text[], %(body)s::text[]) AS g (n, kind, body)
)
SELECT * FROM created;

-- name: forks_of_run
SELECT * FROM surestep.runs WHERE forked_from = %s ORDER BY created_at, run_id;

-- name: run_of_request
SELECT * FROM surestep.runs WHERE tenant = %s AND request_id = %s;

-- name: run_by_id
SELECT * FROM surestep.runs WHERE run_id = %s;

-- name: latest_run
SELECT * FROM surestep.runs WHERE thread_id = %s ORDER BY created_at DESC, run_id DESC LIMIT 1;

-- name: newest_runs
SELECT * FROM surestep.runs WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s::text
ORDER BY created_at DESC, run_id DESC LIMIT %(limit)s;

-- name: runs_by_status
SELECT status, count(*) AS n FROM surestep.runs WHERE tenant = %s GROUP BY 1 ORDER BY 1;

-- name: runs_left_behind
-- Runs with which nobody goes on by himself, and why: answered or not answered in time, told something, asked to end,
-- without the worker that drove it, or stopped in order, which somebody wanted. `left_to_s` is until when a sweeper leaves it to another.
SELECT r.run_id, r.thread_id, r.tenant, r.status, s.attempts, s.last_error,
    extract(epoch FROM s.next_at - clock_timestamp())::float8 AS left_to_s,
    CASE
        WHEN l.cancel_requested THEN 'cancelled'
        WHEN r.status = 'running' AND l.owner IS NULL THEN 'stopped'
        WHEN r.status = 'running' THEN 'lost'
        WHEN asked.decided THEN 'decided'
        WHEN told.something THEN 'told'
        ELSE 'expired'
    END AS why
FROM surestep.runs r JOIN surestep.leases l USING (run_id) LEFT JOIN surestep.resumptions s
    ON s.run_id = r.run_id AND s.next_at > clock_timestamp() - interval '1 day'
CROSS JOIN LATERAL (
    SELECT bool_or(a.status NOT IN ('pending', 'expired')) AS decided, count(*) > 0 AS answered
    FROM surestep.approvals a
    WHERE a.run_id = r.run_id AND a.status <> 'withdrawn'
        AND (a.status <> 'pending' OR a.expires_at <= clock_timestamp())
        AND NOT EXISTS (
            SELECT FROM surestep.journal j
            WHERE j.run_id = r.run_id AND j.kind = 'decision' AND j.body ->> 'approval_id' = a.approval_id
        )
) AS asked
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM surestep.instructions i WHERE i.run_id = r.run_id AND i.taken_at IS NULL) AS something
) AS told
WHERE r.status IN ('running', 'paused', 'limited') AND l.fence > 0
    AND (%(run_id)s::text IS NULL OR r.run_id = %(run_id)s) AND NOT (
    l.owner IS NOT NULL AND l.expires_at > clock_timestamp() AND EXISTS (
        SELECT FROM pg_stat_activity a
        WHERE a.pid = l.backend_pid AND (a.backend_start IS NULL OR a.backend_start = l.backend_start)
    )
) AND (l.cancel_requested OR r.status = 'running' OR (r.status = 'paused' AND (asked.answered OR told.something)))
ORDER BY r.created_at, r.run_id;

-- name: set_run_status
WITH held AS (
    SELECT run_id FROM surestep.leases
    WHERE run_id = %(run_id)s AND fence = %(fence)s AND owner IS NOT NULL FOR SHARE
)
UPDATE surestep.runs r
SET status = %(status)s, summary = %(summary)s::jsonb, ended_at = CASE WHEN %(ended)s THEN clock_timestamp() END
FROM held WHERE r.run_id = held.run_id
RETURNING r.run_id;

-- ---------------------------------------------------------------- approvals

-- name: record_approvals
-- Asked again after it was withdrawn, it is a new asking: nobody has agreed to it yet.
INSERT INTO surestep.approvals AS a (approval_id, run_id, thread_id, step_id, args_sha256, request, expires_at)
SELECT r ->> 'approval_id', r ->> 'run_id', r ->> 'thread_id', r ->> 'step_id', r ->> 'args_sha256', r,
    (r ->> 'expires_at')::timestamptz
FROM jsonb_array_elements(%s::jsonb) AS r
ON CONFLICT (approval_id) DO UPDATE SET status = 'pending', request = excluded.request,
    expires_at = excluded.expires_at, voters = '{}', asking = a.asking + 1, escalated_at = NULL
WHERE a.status = 'withdrawn';

-- name: decide_approvals
-- One person's word on some requests: on all of them or on none. Who has waited for the locks sees the rows as they are
-- then: of any number of words at once each is counted once, and the first no, or the last yes that is needed, ends it.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(given)s::jsonb)
        AS g (approval_id text, status text, decision jsonb, args_sha256 text)
), held AS MATERIALIZED (
    SELECT a.approval_id, g.status, g.decision, clock_timestamp() AS now,
        CASE WHEN g.status = 'approved' THEN a.voters || %(by)s::text ELSE a.voters END AS voters,
        g.status <> 'approved' OR cardinality(a.voters) + 1 >= coalesce((a.request ->> 'needed')::integer, 1) AS ends
    FROM surestep.approvals a JOIN given g USING (approval_id) JOIN surestep.runs r USING (run_id)
    WHERE a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > clock_timestamp())
        AND r.tenant = %(tenant)s AND (%(thread_id)s::text IS NULL OR a.thread_id = %(thread_id)s::text)
        AND (g.args_sha256 IS NULL OR g.args_sha256 = a.args_sha256)
        AND (g.status = 'rejected' OR NOT %(by)s::text = ANY (a.voters))
        AND (g.status = 'rejected' OR %(by)s::text IS DISTINCT FROM a.request ->> 'not_by')
        AND (
            coalesce(jsonb_array_length(a.request -> 'approvers'), 0) = 0 OR (g.status = 'rejected' AND %(refuses)s)
            OR a.request -> 'approvers' ?| %(roles)s::text[]
            OR ((a.request ->> 'escalates_at')::timestamptz <= clock_timestamp()
                AND a.request -> 'escalates_to' ?| %(roles)s::text[])
        )
    ORDER BY a.approval_id FOR NO KEY UPDATE OF a
), counted AS (
    UPDATE surestep.approvals a
    SET voters = held.voters,
        status = CASE WHEN ends THEN held.status ELSE a.status END,
        decision = CASE WHEN ends THEN held.decision END,
        decided_at = CASE WHEN ends THEN held.now END,
        decided_by = CASE WHEN NOT ends THEN NULL WHEN held.status = 'approved' THEN array_to_string(held.voters, ', ')
            ELSE %(by)s::text END
    FROM held
    WHERE a.approval_id = held.approval_id AND (SELECT count(*) FROM held) = (SELECT count(*) FROM given)
    RETURNING a.approval_id, a.asking, a.args_sha256, a.request, a.status, held.decision AS word, held.now
), kept AS (
    INSERT INTO surestep.decisions (approval_id, asking, decided_by, roles, tenant, via, args_sha256, decision, decided_at)
    SELECT approval_id, asking, %(by)s, %(roles)s::text[], %(tenant)s, %(via)s, args_sha256, word, now FROM counted
)
SELECT approval_id, request, status FROM counted ORDER BY approval_id;

-- name: approvals_of_run
SELECT * FROM surestep.answered_approvals WHERE run_id = %s ORDER BY created_at, approval_id;

-- name: approval_by_id
SELECT * FROM surestep.answered_approvals WHERE approval_id = %s AND tenant = %s;

-- name: waiting_approvals
SELECT * FROM surestep.answered_approvals
WHERE status = 'pending' AND (%(thread_id)s::text IS NULL OR thread_id = %(thread_id)s::text)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY created_at, approval_id;

-- name: pending_approvals
SELECT request FROM surestep.approvals
WHERE status = 'pending' AND (expires_at IS NULL OR expires_at > clock_timestamp())
    AND (%(thread_id)s::text IS NULL OR thread_id = %(thread_id)s::text)
    AND (%(tenant)s::text IS NULL OR EXISTS (
        SELECT FROM surestep.runs r WHERE r.run_id = approvals.run_id AND r.tenant = %(tenant)s::text
    ))
ORDER BY created_at, approval_id;

-- name: withdraw_approvals
UPDATE surestep.approvals SET status = 'withdrawn' WHERE approval_id = ANY (%(ids)s::text[]) AND status = 'pending'
RETURNING approval_id;

-- name: withdraw_as_owner
-- Who has lost the run takes back nothing that its new owner asks: a takeover waits for this lock, or goes before it.
WITH owner AS (SELECT FROM surestep.leases WHERE run_id = %(run_id)s AND fence = %(fence)s FOR SHARE)
UPDATE surestep.approvals SET status = 'withdrawn'
WHERE approval_id = ANY (%(ids)s::text[]) AND status = 'pending' AND EXISTS (SELECT FROM owner)
RETURNING approval_id;

-- name: expire_approvals
UPDATE surestep.approvals SET status = 'expired', decided_at = clock_timestamp()
WHERE status = 'pending' AND expires_at <= clock_timestamp()
    AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s::text)
RETURNING request;

-- name: escalate_approvals
UPDATE surestep.approvals SET escalated_at = clock_timestamp()
WHERE status = 'pending' AND escalated_at IS NULL AND (request -> 'escalates_at') IS NOT NULL
    AND (request ->> 'escalates_at')::timestamptz <= clock_timestamp()
    AND (expires_at IS NULL OR expires_at > clock_timestamp())
RETURNING request;

-- ---------------------------------------------------------------- tool settings

-- name: tool_settings
SELECT tool, settings FROM surestep.tool_settings;

-- name: settings_of_tool
SELECT settings FROM surestep.tool_settings WHERE tool = %s;

-- name: swap_tool_settings
-- Nothing is stored over what the caller has not seen; a trigger writes the change down.
INSERT INTO surestep.tool_settings AS stored (tool, settings, updated_by)
SELECT %(tool)s, %(new)s::jsonb, %(by)s
WHERE %(old)s::jsonb = '{}' OR EXISTS (SELECT FROM surestep.tool_settings WHERE tool = %(tool)s)
ON CONFLICT (tool) DO UPDATE
SET settings = excluded.settings, updated_by = excluded.updated_by, updated_at = clock_timestamp()
WHERE stored.settings = %(old)s::jsonb;

-- name: tool_changes
SELECT tool, changed_at, changed_by, before, after FROM surestep.tool_changes
WHERE %(tool)s::text IS NULL OR tool = %(tool)s
ORDER BY change_id DESC LIMIT %(limit)s;

-- ---------------------------------------------------------------- template uses

-- name: end_run_of_template
-- A run's end and what it says of its template are one commit; told twice, it counts once. The window stands still
-- while a template is set aside, so that it says why.
WITH held AS (
    SELECT run_id FROM surestep.leases
    WHERE run_id = %(run_id)s AND fence = %(fence)s AND owner IS NOT NULL FOR SHARE
), ended AS (
    UPDATE surestep.runs r
    SET status = %(status)s, summary = %(summary)s::jsonb, ended_at = CASE WHEN %(ended)s THEN clock_timestamp() END
    FROM held WHERE r.run_id = held.run_id
    RETURNING r.run_id
), counted AS (
    INSERT INTO surestep.template_uses (run_id, template, sha256, succeeded, code)
    SELECT run_id, %(template)s, %(sha256)s, %(succeeded)s::boolean, %(code)s::text FROM ended
    ON CONFLICT DO NOTHING
    RETURNING template, sha256, succeeded, code
), added AS (
    INSERT INTO surestep.template_standing AS s (template, sha256, used, succeeded, failed, recent, last_failure)
    SELECT template, sha256, 1, (succeeded IS TRUE)::int, (succeeded IS FALSE)::int,
        array_remove(ARRAY[succeeded], NULL), code
    FROM counted
    ON CONFLICT (template, sha256) DO UPDATE
    SET used = s.used + 1, succeeded = s.succeeded + excluded.succeeded, failed = s.failed + excluded.failed,
        last_used_at = clock_timestamp(),
        recent = CASE WHEN s.set_aside_at IS NULL THEN (excluded.recent || s.recent)[1:%(window)s::int]
            ELSE s.recent END,
        last_failure = CASE WHEN s.set_aside_at IS NULL THEN coalesce(excluded.last_failure, s.last_failure)
            ELSE s.last_failure END,
        set_aside_at = CASE
            WHEN s.set_aside_at IS NULL AND cardinality(excluded.recent) > 0 AND (
                SELECT count(*) >= %(at_least)s AND count(*) FILTER (WHERE served) < %(share)s::float8 * count(*)
                FROM unnest((excluded.recent || s.recent)[1:%(window)s::int]) AS served
            ) THEN clock_timestamp()
            ELSE s.set_aside_at END
)
SELECT run_id FROM ended;

-- name: template_standing
SELECT * FROM surestep.template_standing;

-- name: templates_aside
SELECT template, sha256 FROM surestep.template_standing WHERE set_aside_at IS NOT NULL;

-- name: restore_template
UPDATE surestep.template_standing SET set_aside_at = NULL, recent = '{}'
WHERE template = %(template)s AND sha256 = %(sha256)s AND set_aside_at IS NOT NULL;

-- ---------------------------------------------------------------- shadows

-- name: add_to_shadow_counts
INSERT INTO surestep.shadow_counts AS c (tool, candidate, edition, agreed, differed, failed, in_a_row)
VALUES (
    %(tool)s, %(candidate)s, %(edition)s, %(agreed)s::bigint, %(differed)s::bigint, %(failed)s::bigint,
    %(in_a_row)s::bigint
)
ON CONFLICT (tool, candidate, edition) DO UPDATE
SET agreed = c.agreed + excluded.agreed, differed = c.differed + excluded.differed,
    failed = c.failed + excluded.failed, updated_at = clock_timestamp(),
    in_a_row = CASE WHEN %(broken)s::boolean THEN 0 ELSE c.in_a_row END + excluded.in_a_row;

-- name: note_difference
INSERT INTO surestep.shadow_differences (tool, candidate, args_sha256, places)
VALUES (%(tool)s, %(candidate)s, %(args_sha256)s, %(places)s::jsonb);

-- name: prune_differences
DELETE FROM surestep.shadow_differences
WHERE tool = %(tool)s AND candidate = %(candidate)s AND difference_id <= (
    SELECT difference_id FROM surestep.shadow_differences WHERE tool = %(tool)s AND candidate = %(candidate)s
    ORDER BY difference_id DESC OFFSET %(kept)s LIMIT 1
);

-- name: shadow_counts
SELECT tool, candidate, edition, agreed, differed, failed, in_a_row FROM surestep.shadow_counts;

-- name: shadow_differences
SELECT noted_at, args_sha256, places FROM surestep.shadow_differences WHERE tool = %s AND candidate = %s
ORDER BY difference_id DESC;

-- name: break_row
UPDATE surestep.shadow_counts SET in_a_row = 0 WHERE (tool, candidate, edition) = (%s, %s, %s);

-- ---------------------------------------------------------------- tool stores

-- name: breaker
SELECT state FROM surestep.tool_breakers WHERE tool = %s;

-- name: breakers
SELECT tool, state FROM surestep.tool_breakers;

-- name: first_breaker
INSERT INTO surestep.tool_breakers (tool, state) VALUES (%s, %s::jsonb) ON CONFLICT DO NOTHING;

-- name: swap_breaker
UPDATE surestep.tool_breakers SET state = %s::jsonb, updated_at = clock_timestamp()
WHERE tool = %s AND state = %s::jsonb;

-- name: cached
SELECT value, extract(epoch FROM clock_timestamp() - stored_at)::float8 AS age_s
FROM surestep.tool_cache WHERE key = %s AND expires_at > clock_timestamp();

-- name: cache
INSERT INTO surestep.tool_cache (key, tool, value, expires_at, run_id)
VALUES (%s, %s, %s::jsonb, clock_timestamp() + make_interval(secs => %s), %s)
ON CONFLICT (key) DO UPDATE SET tool = excluded.tool, value = excluded.value, run_id = excluded.run_id,
    stored_at = clock_timestamp(), expires_at = excluded.expires_at;

-- name: prune_cache
DELETE FROM surestep.tool_cache WHERE key IN (
    SELECT key FROM surestep.tool_cache WHERE expires_at <= clock_timestamp()
    ORDER BY expires_at LIMIT 10000 FOR UPDATE SKIP LOCKED
);

-- ---------------------------------------------------------------- failed calls

-- name: failed_calls
-- What has changed in the last `since_s` seconds; a call that has succeeded since has no ages.
SELECT key, code, ARRAY(
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM unnest(failed_at) WITH ORDINALITY AS f (at, n) ORDER BY n
) AS ages_s
FROM surestep.failed_calls
WHERE changed_at > clock_timestamp() - make_interval(secs => %(since_s)s) AND expires_at > clock_timestamp();

-- name: note_failed_call
WITH pruned AS (
    DELETE FROM surestep.failed_calls WHERE key = ANY (ARRAY(
        SELECT key FROM surestep.failed_calls
        WHERE expires_at <= clock_timestamp() AND key <> %(key)s LIMIT 100 FOR UPDATE SKIP LOCKED
    ))
)
INSERT INTO surestep.failed_calls AS f (key, tool, failed_at, code, expires_at)
VALUES (
    %(key)s, %(tool)s, ARRAY[clock_timestamp()], %(code)s, clock_timestamp() + make_interval(secs => %(within_s)s)
)
ON CONFLICT (key) DO UPDATE
SET failed_at = (f.failed_at || excluded.failed_at)[greatest(1, cardinality(f.failed_at) + 2 - %(kept)s):],
    code = excluded.code, changed_at = clock_timestamp(), expires_at = greatest(f.expires_at, excluded.expires_at)
RETURNING ARRAY(
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM unnest(failed_at) WITH ORDINALITY AS f (at, n) ORDER BY n
) AS ages_s;

-- name: clear_failed_calls
-- The row stays for a minute, so that others see it change.
UPDATE surestep.failed_calls
SET failed_at = '{}', changed_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => %(seen_s)s)
WHERE (key = %(key)s::text OR tool = %(tool)s::text) AND failed_at <> '{}';

-- ---------------------------------------------------------------- slots of tools

-- name: lock_tool_slots
-- Who takes slots of a tool takes them one after the other; a lock waits for no disk, and neither does what it guards: a
-- server that crashes forgets the slots of its last half second.
SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(728313, hashtext(%(tool)s::text));

-- name: take_slot
-- Under that lock. Those that wait have places too, by when they first asked: a slot or a start that is free is for the
-- first of them. Of the starts that a rate looks at it is the n-th last that says when there may be another one.
WITH moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), mine AS MATERIALIZED (
    SELECT taken, asked_at FROM surestep.tool_slots WHERE slot = %(slot)s
), live AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE s.taken) AS taken,
        count(*) FILTER (
            WHERE NOT s.taken AND (s.asked_at, s.slot) < (coalesce((SELECT asked_at FROM mine), m.now), %(slot)s::text)
        ) AS ahead,
        array_agg(DISTINCT s.worker) FILTER (WHERE s.taken) AS holders
    FROM surestep.tool_slots s, moment m
    WHERE s.tool = %(tool)s AND s.slot <> %(slot)s AND s.expires_at > m.now
), judged AS MATERIALIZED (
    SELECT m.now, l.taken, l.ahead, l.holders, greatest(0, coalesce(extract(epoch FROM (
        SELECT at FROM surestep.tool_starts WHERE tool = %(tool)s ORDER BY at DESC
        OFFSET (SELECT %(calls)s::bigint - 1 - ahead %% %(calls)s::bigint FROM live) LIMIT 1
    ) - m.now) + %(per_s)s::float8, 0)) + coalesce(l.ahead / %(calls)s::bigint, 0) * %(per_s)s::float8 AS rate_wait_s
    FROM moment m, live l
), said AS MATERIALIZED (
    SELECT j.*, coalesce((SELECT taken FROM mine), false) OR (
        (%(most)s::bigint IS NULL OR j.taken + j.ahead < %(most)s::bigint) AND j.rate_wait_s <= 0
    ) AS granted
    FROM judged j
), forgotten AS (
    DELETE FROM surestep.tool_slots WHERE slot = ANY (ARRAY(
        SELECT s.slot FROM surestep.tool_slots s, moment m
        WHERE s.tool = %(tool)s AND s.slot <> %(slot)s AND s.expires_at <= m.now FOR UPDATE OF s SKIP LOCKED
    ))
), past AS (
    DELETE FROM surestep.tool_starts t USING said
    WHERE said.granted AND t.tool = %(tool)s AND t.at <= said.now - make_interval(secs => %(per_s)s)
), started AS (
    INSERT INTO surestep.tool_starts (tool, slot, at)
    SELECT %(tool)s, %(slot)s, now FROM said
    WHERE granted AND %(calls)s::bigint IS NOT NULL AND NOT EXISTS (SELECT FROM mine WHERE taken)
), kept AS (
    INSERT INTO surestep.tool_slots (slot, tool, worker, taken, asked_at, expires_at)
    SELECT %(slot)s, %(tool)s, %(worker)s, granted, now,
        now + make_interval(secs => CASE WHEN granted THEN %(hold_s)s::float8 ELSE %(waiting_s)s::float8 END)
    FROM said
    ON CONFLICT (slot) DO UPDATE SET taken = excluded.taken, expires_at = excluded.expires_at
)
SELECT granted, rate_wait_s::float8 AS rate_wait_s, ahead, holders FROM said;

-- name: give_slots_back
DELETE FROM surestep.tool_slots WHERE slot = ANY (%(slots)s::text[]);

-- name: renew_slots
-- One that had expired is held again: its call still goes on.
INSERT INTO surestep.tool_slots (slot, tool, worker, taken, asked_at, expires_at)
SELECT slot, tool, %(worker)s, true, clock_timestamp(), clock_timestamp() + make_interval(secs => %(hold_s)s)
FROM unnest(%(slots)s::text[], %(tools)s::text[]) AS g (slot, tool)
ON CONFLICT (slot) DO UPDATE SET expires_at = excluded.expires_at;

-- name: free_slots_of_the_dead
DELETE FROM surestep.tool_slots WHERE slot = ANY (ARRAY(
    SELECT slot FROM surestep.tool_slots WHERE worker = ANY (%(workers)s::text[]) FOR UPDATE SKIP LOCKED
));

-- Toolkits' own tables

-- name: toolkit_schemas
SELECT toolkit, sha256 FROM surestep.toolkit_schemas

-- name: lock_toolkit_schemas
LOCK TABLE surestep.toolkit_schemas IN SHARE ROW EXCLUSIVE MODE

-- name: note_toolkit_schema
INSERT INTO surestep.toolkit_schemas (toolkit, sha256) VALUES (%(toolkit)s, %(sha256)s) ON CONFLICT DO NOTHING

-- ---------------------------------------------------------------- tombstones

-- name: tombstone_of_run
SELECT * FROM surestep.tombstones
WHERE run_id = %s AND (archived_at IS NOT NULL OR erased_at IS NOT NULL);

-- name: tombstone_of_request
SELECT * FROM surestep.tombstones
WHERE tenant = %s AND request_sha256 = %s AND (archived_at IS NOT NULL OR erased_at IS NOT NULL);

-- name: tombstones_of_thread
-- The newest first; those of an archive that was only begun too.
SELECT * FROM surestep.tombstones WHERE thread_sha256 = %s ORDER BY created_at DESC, run_id DESC;

-- name: count_archived
SELECT count(*) AS n FROM surestep.tombstones WHERE archived_at IS NOT NULL AND erased_at IS NULL;

-- ---------------------------------------------------------------- audit

-- name: audit_note
SELECT surestep.audit_note(%(chain)s, %(kind)s, %(subject)s, %(told)s::jsonb);

-- name: audit_settings_used
-- Under which settings a process is at work, where that is not what the last one on its host has said.
SELECT surestep.audit_note('settings', 'settings.used', %(host)s, %(told)s::jsonb)
WHERE %(told)s::jsonb IS DISTINCT FROM (
    SELECT details FROM surestep.audit
    WHERE chain = 'settings' AND kind = 'settings.used' AND subject = %(host)s::text ORDER BY seq DESC LIMIT 1
);

-- name: audit_chains
-- Every chain that anything knows of, so that one that was taken away is missed.
WITH named AS (
    SELECT chain FROM surestep.audit_chains
    UNION SELECT chain FROM surestep.audit
    UNION SELECT chain FROM surestep.audit_sealed
    UNION SELECT run_id FROM surestep.runs
    UNION SELECT run_id FROM surestep.tombstones WHERE archived_at IS NOT NULL OR erased_at IS NOT NULL
    UNION SELECT 'settings' FROM surestep.tool_changes
)
SELECT chain, c.salt, coalesce(c.length, 0) AS length, c.head, r.run_id IS NOT NULL AS stored,
    t.archived_at IS NOT NULL AS archived, t.erased_at IS NOT NULL AS erased, coalesce(r.tenant, t.tenant) AS tenant
FROM named LEFT JOIN surestep.audit_chains c USING (chain) LEFT JOIN surestep.runs r ON r.run_id = chain
    LEFT JOIN surestep.tombstones t ON t.run_id = chain
WHERE %(chains)s::text[] IS NULL OR chain = ANY (%(chains)s::text[])
ORDER BY chain;

-- name: audit_entries
SELECT chain, seq, at, kind, subject, content, details, details::text AS told, hash FROM surestep.audit
WHERE chain = ANY (%(chains)s::text[]) ORDER BY chain, seq;

-- name: audit_of_no_run
-- What was noted in chains that are no run's, the newest first.
SELECT chain, seq, at, kind, subject, content, details, details::text AS told, hash FROM surestep.audit a
WHERE chain = ANY (%(chains)s::text[]) ORDER BY at DESC, chain, seq DESC LIMIT %(limit)s;

-- name: chains_of_thread
-- Of all its runs, those too that are in the archive or were erased, the oldest first; or the one run of this id.
SELECT run_id AS chain, status, created_at, false AS gone FROM surestep.runs
WHERE (thread_id = %(thread_id)s OR run_id = %(thread_id)s)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
UNION ALL
SELECT run_id, status, created_at, true FROM surestep.tombstones
WHERE (thread_sha256 = %(thread_sha256)s OR run_id = %(thread_id)s) AND (archived_at IS NOT NULL OR erased_at IS NOT NULL)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY 3, 1;

-- name: audit_words
-- Who has said what about which step, by the key of a decision and by that of a request.
SELECT 'decision' AS what, d.decision_id::text AS key, a.step_id, a.request ->> 'tool' AS tool, d.decided_by,
    d.decision ->> 'type' AS said, d.via
FROM surestep.decisions d JOIN surestep.approvals a USING (approval_id) WHERE a.run_id = %(run_id)s
UNION ALL
SELECT 'approval', approval_id, step_id, request ->> 'tool', decided_by, decision ->> 'type', NULL
FROM surestep.approvals WHERE run_id = %(run_id)s
UNION ALL
SELECT 'instruction', instruction_id, NULL, NULL, said_by ->> 'name', NULL, NULL
FROM surestep.instructions WHERE run_id = %(run_id)s
UNION ALL
SELECT 'run', run_id, NULL, NULL, input ->> 'started_by', NULL, NULL
FROM surestep.runs WHERE run_id = %(run_id)s;

-- name: audit_salt
SELECT salt FROM surestep.audit_chains WHERE chain = %s;

-- name: audit_changes
SELECT change_id::text AS key, tool, changed_by FROM surestep.tool_changes;

-- name: audit_moment
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: audit_timezone
SET LOCAL timezone = 'UTC';

-- name: audited_journal
SELECT run_id AS chain, fence || '/' || n AS key, jsonb_build_array(
    run_id, fence, n, kind, step_id, attempt, (extract(epoch FROM at) * 1000000)::bigint
)::text || body::text AS content
FROM surestep.journal WHERE run_id = ANY (%(chains)s::text[]) ORDER BY run_id, fence, n;

-- name: audited_runs
SELECT run_id AS chain, run_id AS key, jsonb_build_array(
    run_id, thread_id, tenant, request_id, goal, input, input_sha256, status, summary, created_at, ended_at, forked_from
)::text AS content
FROM surestep.runs WHERE run_id = ANY (%(chains)s::text[]);

-- name: audited_approvals
SELECT run_id AS chain, approval_id AS key, jsonb_build_array(
    approval_id, run_id, thread_id, step_id, args_sha256, request, status, decision, decided_by, decided_at, created_at,
    expires_at, voters, asking, escalated_at
)::text AS content
FROM surestep.approvals WHERE run_id = ANY (%(chains)s::text[]);

-- name: audited_decisions
SELECT a.run_id AS chain, d.decision_id::text AS key, jsonb_build_array(
    d.decision_id, d.approval_id, d.asking, d.decided_by, d.roles, d.tenant, d.via, d.args_sha256, d.decision,
    d.decided_at
)::text AS content
FROM surestep.decisions d JOIN surestep.approvals a USING (approval_id) WHERE a.run_id = ANY (%(chains)s::text[]);

-- name: audited_instructions
SELECT run_id AS chain, instruction_id AS key,
    jsonb_build_array(run_id, instruction_id, message, said_by, sent_at, taken_at)::text AS content
FROM surestep.instructions WHERE run_id = ANY (%(chains)s::text[]);

-- name: audited_tombstones
SELECT run_id AS chain, run_id AS key, jsonb_build_array(
    run_id, tenant, request_sha256, thread_sha256, request_id, thread_id, input_sha256, status, effects, place, folder,
    created_at, ended_at, archived_at, erased_at, forked_from
)::text AS content
FROM surestep.tombstones WHERE run_id = ANY (%(chains)s::text[]);

-- name: audited_settings
SELECT 'settings' AS chain, change_id::text AS key,
    jsonb_build_array(change_id, tool, changed_at, changed_by, before, after)::text AS content
FROM surestep.tool_changes WHERE 'settings' = ANY (%(chains)s::text[]);

-- name: forget_salts
-- Of runs that were erased: what was hashed can be guessed by nobody any more.
UPDATE surestep.audit_chains c SET salt = NULL
FROM surestep.tombstones t
WHERE t.run_id = c.chain AND t.thread_sha256 = %(thread_sha256)s AND t.erased_at IS NOT NULL;

-- name: last_seal
SELECT clock_timestamp() AS now, s.* FROM (SELECT) AS one LEFT JOIN LATERAL (
    SELECT seal, at, hash, key_id, mac FROM surestep.audit_seals ORDER BY seal DESC LIMIT 1
) AS s ON true;

-- name: chains_to_seal
SELECT chain, length, head FROM surestep.audit_chains WHERE NOT sealed AND length > 0 ORDER BY chain;

-- name: add_seal
-- Of several who seal at once one is first, and the others find nothing added. A chain that has grown since it was read
-- waits for the next seal, and so does one that is being written: nobody is waited for.
WITH given AS (
    SELECT * FROM unnest(%(chains)s::text[], %(lengths)s::bigint[], %(heads)b::bytea[]) AS g (chain, length, head)
), added AS (
    INSERT INTO surestep.audit_seals (seal, at, hash, key_id, mac)
    VALUES (%(seal)s, %(at)s, %(hash)s, %(key_id)s, %(mac)s) ON CONFLICT DO NOTHING RETURNING seal
), covered AS (
    INSERT INTO surestep.audit_sealed (seal, chain, length, head) SELECT seal, chain, length, head FROM added, given
), grown AS (
    SELECT c.chain FROM surestep.audit_chains c JOIN given g USING (chain, length) WHERE EXISTS (SELECT FROM added)
    ORDER BY c.chain FOR NO KEY UPDATE OF c SKIP LOCKED
), marked AS (
    UPDATE surestep.audit_chains c SET sealed = true FROM grown WHERE c.chain = grown.chain
)
SELECT seal FROM added;

-- name: audit_seals
SELECT seal, at, hash, key_id, mac FROM surestep.audit_seals ORDER BY seal;

-- name: sealed_by
SELECT seal, chain, length, head FROM surestep.audit_sealed
WHERE seal BETWEEN %(first)s AND %(last)s ORDER BY seal, chain;

-- name: sealed_ends
SELECT seal, chain, length, head FROM surestep.audit_sealed WHERE chain = ANY (%(chains)s::text[]) ORDER BY chain, seal;

-- ---------------------------------------------------------------- archive

-- name: runs_to_archive
-- Oldest first. A thread with a run that may still go on is left alone as a whole (rule 22).
SELECT r.* FROM surestep.runs r
WHERE r.status IN ('done', 'failed', 'cancelled')
    AND r.ended_at <= clock_timestamp() - make_interval(secs => %(older_than_s)s)
    AND (%(thread_id)s::text IS NULL OR r.thread_id = %(thread_id)s::text)
    AND (%(tenant)s::text IS NULL OR r.tenant = %(tenant)s::text)
    AND NOT EXISTS (
        SELECT FROM surestep.runs o
        WHERE o.thread_id = r.thread_id AND o.status NOT IN ('done', 'failed', 'cancelled')
    )
ORDER BY r.ended_at, r.run_id;

-- name: artifacts_of_run
SELECT output_ref, sha256, size, media_type, created_at FROM surestep.artifacts WHERE run_id = %s ORDER BY output_ref;

-- name: approval_rows_of_run
SELECT a.approval_id, a.step_id, a.args_sha256, a.request, a.status, a.decision, a.decided_by, a.decided_at, a.created_at,
    a.expires_at, v.votes
FROM surestep.approvals a JOIN surestep.answered_approvals v USING (approval_id)
WHERE a.run_id = %s ORDER BY a.created_at, approval_id;

-- name: begun_archive
SELECT place, folder FROM surestep.tombstones WHERE run_id = %s AND place IS NOT NULL;

-- name: begin_archive
-- Where the files of this run are about to be.
INSERT INTO surestep.tombstones AS t (
    run_id, tenant, request_sha256, thread_sha256, request_id, thread_id, input_sha256, status, place, folder, created_at,
    ended_at, forked_from
)
SELECT run_id, tenant, %(request_sha256)s, %(thread_sha256)s, request_id, thread_id, input_sha256, status,
    %(place)s, %(folder)s, created_at, ended_at, forked_from
FROM surestep.runs WHERE run_id = %(run_id)s
ON CONFLICT (run_id) DO UPDATE SET place = excluded.place, folder = excluded.folder
WHERE t.archived_at IS NULL AND t.erased_at IS NULL;

-- name: lock_for_burial
-- Against requests that are being made right now; a statement after this one sees those that were made before it.
SELECT pg_advisory_xact_lock(728311, key)
FROM (SELECT DISTINCT hashtext(request) AS key FROM unnest(%(requests)s::text[]) AS g (request) ORDER BY 1) AS keys
UNION ALL
SELECT pg_advisory_xact_lock(728312, hashtext(%(thread_id)s));

-- name: bury_run
-- The row, and by it everything of the run, goes only while this archive owns its lease, and no run of its thread may
-- still go on. Which files it leaves is written down in the same commit.
WITH held AS (
    SELECT l.run_id FROM surestep.leases l
    WHERE l.run_id = %(run_id)s AND l.fence = %(fence)s AND l.owner IS NOT NULL FOR UPDATE
), over AS (
    SELECT run_id FROM held WHERE NOT EXISTS (
        SELECT FROM surestep.runs o
        WHERE o.thread_id = %(thread_id)s AND o.status NOT IN ('done', 'failed', 'cancelled')
    )
), loosened AS (
    INSERT INTO surestep.loose_files (location)
    SELECT a.location FROM surestep.artifacts a JOIN over USING (run_id) WHERE a.location IS NOT NULL
    ON CONFLICT DO NOTHING
), stays AS (
    UPDATE surestep.tombstones t
    SET archived_at = clock_timestamp(), effects = %(effects)s::jsonb, status = r.status
    FROM surestep.runs r JOIN over USING (run_id) WHERE t.run_id = r.run_id
    RETURNING t.run_id
), unsealed AS (
    DELETE FROM surestep.secrets s USING stays WHERE s.run_id = stays.run_id
)
DELETE FROM surestep.runs r USING stays WHERE r.run_id = stays.run_id
RETURNING r.run_id;

-- ---------------------------------------------------------------- erasure

-- name: runs_of_thread
SELECT * FROM surestep.runs WHERE thread_id = %s ORDER BY created_at, run_id;

-- name: forks_that_hold
-- Runs of other threads, archived or not, that were forked from these.
SELECT run_id, thread_id FROM surestep.runs
WHERE forked_from = ANY (%(run_ids)s::text[]) AND thread_id <> %(thread_id)s
UNION ALL
SELECT t.run_id, t.thread_id FROM surestep.tombstones t
WHERE t.forked_from = ANY (%(run_ids)s::text[]) AND t.archived_at IS NOT NULL AND t.erased_at IS NULL
    AND t.thread_id <> %(thread_id)s
ORDER BY 2, 1;

-- name: erase_thread
-- All or nothing: every run of the thread is one whose lease this caller owns, or nothing happens.
WITH given AS (
    SELECT * FROM unnest(%(run_ids)s::text[], %(fences)s::bigint[], %(requests)s::text[], %(effects)s::text[])
        AS g (run_id, fence, request_sha256, effects)
), held AS MATERIALIZED (
    SELECT l.run_id FROM surestep.leases l JOIN given g USING (run_id, fence)
    WHERE l.owner IS NOT NULL ORDER BY l.run_id FOR UPDATE OF l
), over AS MATERIALIZED (
    SELECT count(*) AS runs FROM held
    HAVING count(*) = cardinality(%(run_ids)s::text[]) AND NOT EXISTS (
        SELECT FROM surestep.runs o WHERE o.thread_id = %(thread_id)s AND (
            o.run_id <> ALL (%(run_ids)s::text[]) OR o.status NOT IN ('done', 'failed', 'cancelled')
        )
    )
), loosened AS (
    INSERT INTO surestep.loose_files (location)
    SELECT DISTINCT a.location FROM surestep.artifacts a JOIN held USING (run_id), over WHERE a.location IS NOT NULL
    ON CONFLICT DO NOTHING
), fresh AS (
    INSERT INTO surestep.tombstones (
        run_id, tenant, request_sha256, thread_sha256, status, effects, created_at, ended_at, erased_at
    )
    SELECT r.run_id, r.tenant, g.request_sha256, %(thread_sha256)s, r.status, g.effects::jsonb, r.created_at,
        r.ended_at, clock_timestamp()
    FROM surestep.runs r JOIN given g USING (run_id), over
    ON CONFLICT (run_id) DO UPDATE SET request_id = NULL, thread_id = NULL, input_sha256 = NULL, place = NULL,
        folder = NULL, status = excluded.status, effects = excluded.effects, erased_at = excluded.erased_at
), stays AS (
    UPDATE surestep.tombstones t
    SET request_id = NULL, thread_id = NULL, input_sha256 = NULL, place = NULL, folder = NULL,
        erased_at = coalesce(erased_at, clock_timestamp())
    FROM over WHERE t.thread_sha256 = %(thread_sha256)s AND t.run_id <> ALL (%(run_ids)s::text[])
), heads AS (
    DELETE FROM checkpoints c USING over WHERE c.thread_id = %(thread_id)s
), blobs AS (
    DELETE FROM checkpoint_blobs b USING over WHERE b.thread_id = %(thread_id)s
), writes AS (
    DELETE FROM checkpoint_writes w USING over WHERE w.thread_id = %(thread_id)s
), answers AS (
    -- Answers that a run of this thread has asked for last; of those of older versions nobody knows who has.
    DELETE FROM surestep.tool_cache c USING over
    WHERE (c.run_id IS NULL AND %(tenant)s::text = '') OR c.run_id = ANY (%(run_ids)s::text[]) OR c.run_id IN (
        SELECT t.run_id FROM surestep.tombstones t WHERE t.thread_sha256 = %(thread_sha256)s
    )
), fingerprints AS (
    -- A hash of arguments can be guessed; a tenant's keys begin with its name.
    DELETE FROM surestep.failed_calls USING over
    WHERE CASE %(tenant)s::text WHEN '' THEN strpos(key, '/') = 0 ELSE starts_with(key, %(tenant)s::text || '/') END
), unsealed AS (
    DELETE FROM surestep.secrets s USING over WHERE s.run_id = ANY (%(run_ids)s::text[])
), gone AS (
    DELETE FROM surestep.runs r USING held, over WHERE r.run_id = held.run_id
)
SELECT runs FROM over;

-- ---------------------------------------------------------------- checkpoints of runs that are over

-- name: threads_to_trim
SELECT DISTINCT c.thread_id
FROM (SELECT thread_id FROM checkpoints GROUP BY thread_id, checkpoint_ns HAVING count(*) > 1) AS c
WHERE (
    SELECT bool_and(
        r.status IN ('done', 'failed', 'cancelled')
        AND r.ended_at <= clock_timestamp() - make_interval(secs => %(older_than_s)s)
        AND (%(tenant)s::text IS NULL OR r.tenant = %(tenant)s::text)
    )
    FROM surestep.runs r WHERE r.thread_id = c.thread_id
) AND (%(thread_id)s::text IS NULL OR c.thread_id = %(thread_id)s::text);

-- name: forsaken_threads
-- Every run of them is archived or erased, and nothing has been saved for so long.
SELECT c.thread_id FROM checkpoints c
WHERE NOT EXISTS (SELECT FROM surestep.runs r WHERE r.thread_id = c.thread_id)
    AND (%(thread_id)s::text IS NULL OR c.thread_id = %(thread_id)s::text)
    AND EXISTS (
        SELECT FROM surestep.tombstones t
        WHERE t.thread_sha256 = encode(sha256(convert_to(c.thread_id, 'UTF8')), 'hex')
            AND (t.archived_at IS NOT NULL OR t.erased_at IS NOT NULL)
            AND (%(tenant)s::text IS NULL OR t.tenant = %(tenant)s::text)
    )
GROUP BY c.thread_id
HAVING max((c.checkpoint ->> 'ts')::timestamptz) <= clock_timestamp() - make_interval(secs => %(older_than_s)s);

-- name: forget_checkpoints
-- A server saves what it was sent before the run begins: what was saved so lately may be a run that is beginning.
WITH forsaken AS (
    SELECT %(thread_id)s::text AS thread_id
    WHERE NOT EXISTS (SELECT FROM surestep.runs r WHERE r.thread_id = %(thread_id)s)
        AND NOT EXISTS (
            SELECT FROM checkpoints c
            WHERE c.thread_id = %(thread_id)s
                AND (c.checkpoint ->> 'ts')::timestamptz > clock_timestamp() - make_interval(secs => %(older_than_s)s)
        )
), blobs AS (
    DELETE FROM checkpoint_blobs b USING forsaken f WHERE b.thread_id = f.thread_id
), writes AS (
    DELETE FROM checkpoint_writes w USING forsaken f WHERE w.thread_id = f.thread_id
)
DELETE FROM checkpoints c USING forsaken f WHERE c.thread_id = f.thread_id
RETURNING c.checkpoint_id;

-- ---------------------------------------------------------------- loose files

-- name: loose_files
SELECT location FROM surestep.loose_files ORDER BY location;

-- name: use_of_file
-- A run that is being driven may just have uploaded the same bytes, and not have said so yet.
SELECT EXISTS (SELECT FROM surestep.artifacts WHERE location = %(location)s) AS referred,
    EXISTS (SELECT FROM surestep.leases WHERE owner IS NOT NULL AND expires_at > clock_timestamp()) AS driven;

-- name: forget_file
DELETE FROM surestep.loose_files WHERE location = %(location)s;

-- ---------------------------------------------------------------- outbox

-- name: claim_events
-- Who takes an event moves on first when it is due next: it comes again if he dies. One that is too old, or that is about
-- a question which waits for nobody any more, ends here.
WITH due AS (
    SELECT event_id, kind, run_id, approval_id, at FROM surestep.outbox
    WHERE ended IS NULL AND next_at <= clock_timestamp() AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s::text)
    ORDER BY next_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT d.event_id, r.thread_id, r.tenant, a.request, CASE
        WHEN d.at <= clock_timestamp() - make_interval(secs => %(give_up_after_s)s) THEN 'given_up'
        WHEN d.kind IN ('approval_requested', 'approval_escalated', 'outcome_unknown') AND NOT coalesce(
            a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > clock_timestamp()), false
        ) THEN 'outdated'
        WHEN d.kind = 'run_limited' AND r.status <> 'limited' THEN 'outdated'
    END AS ended
    FROM due d JOIN surestep.runs r USING (run_id) LEFT JOIN surestep.approvals a USING (approval_id)
)
UPDATE surestep.outbox o
SET ended = j.ended, ended_at = CASE WHEN j.ended IS NOT NULL THEN clock_timestamp() END,
    attempts = o.attempts + (j.ended IS NULL)::int,
    next_at = clock_timestamp() + make_interval(secs => %(hold_s)s)
FROM judged j
WHERE o.event_id = j.event_id
RETURNING o.event_id, o.kind, o.run_id, j.thread_id, j.tenant, o.code, o.message, o.at, o.attempts, o.ended, j.request;

-- name: event_delivered
UPDATE surestep.outbox SET ended = 'delivered', ended_at = clock_timestamp(), last_error = NULL
WHERE event_id = %(event_id)s AND ended IS NULL;

-- name: event_not_delivered
UPDATE surestep.outbox
SET last_error = %(error)s, next_at = clock_timestamp() + make_interval(secs => %(again_in_s)s)
WHERE event_id = %(event_id)s AND ended IS NULL;

-- name: forget_events
DELETE FROM surestep.outbox WHERE event_id = ANY (ARRAY(
    SELECT event_id FROM surestep.outbox WHERE ended_at <= clock_timestamp() - make_interval(secs => %(older_than_s)s)
    LIMIT 1000 FOR UPDATE SKIP LOCKED
));

-- name: standing_of_outbox
SELECT count(*) FILTER (WHERE ended IS NULL) AS waiting,
    count(*) FILTER (WHERE ended IS NULL AND last_error IS NOT NULL) AS failing,
    count(*) FILTER (WHERE ended = 'given_up') AS given_up,
    min(at) FILTER (WHERE ended IS NULL) AS oldest,
    (array_agg(last_error ORDER BY at DESC) FILTER (WHERE last_error IS NOT NULL))[1] AS last_error
FROM surestep.outbox;

-- ---------------------------------------------------------------- resumptions

-- name: claim_resumption
-- The next attempt is a while away before this one begins: two who sweep do not take the same run, and one that brings
-- its worker down is not tried for ever. With the last attempt it is told.
WITH claimed AS (
    INSERT INTO surestep.resumptions AS r (run_id, attempts, next_at)
    SELECT run_id, 1, clock_timestamp() + make_interval(secs => %(pause_s)s)
    FROM surestep.runs WHERE run_id = %(run_id)s
    ON CONFLICT (run_id) DO UPDATE
    SET attempts = CASE WHEN r.next_at > clock_timestamp() - interval '1 day' THEN r.attempts + 1 ELSE 1 END,
        next_at = clock_timestamp() + make_interval(secs => least(%(pause_s)s * 2 ^ r.attempts, 3600))
    WHERE r.next_at <= clock_timestamp()
        AND (r.attempts < %(most)s OR r.next_at <= clock_timestamp() - interval '1 day')
    RETURNING run_id, attempts, last_error
), told AS (
    INSERT INTO surestep.outbox (kind, run_id, code, message)
    SELECT 'run_stuck', run_id, 'RUN_STUCK', last_error FROM claimed WHERE attempts = %(most)s
)
SELECT attempts FROM claimed;

-- name: resumption_failed
UPDATE surestep.resumptions SET last_error = %(error)s WHERE run_id = %(run_id)s;

-- name: forget_resumption
DELETE FROM surestep.resumptions WHERE run_id = %(run_id)s;

-- name: forget_resumptions
DELETE FROM surestep.resumptions WHERE next_at <= clock_timestamp() - interval '1 day';

-- ---------------------------------------------------------------- sealing

-- name: keep_secrets
INSERT INTO surestep.secrets (run_id, placeholder, sealed, origin)
SELECT %(run_id)s, * FROM unnest(%(placeholders)s::text[], %(sealed)s::bytea[], %(origins)s::text[])
ON CONFLICT DO NOTHING;

-- name: secrets_of_run
SELECT placeholder, sealed, origin FROM surestep.secrets
WHERE run_id = %(run_id)s AND placeholder = ANY (%(placeholders)s::text[]);

-- name: share_secrets
INSERT INTO surestep.secrets (run_id, placeholder, sealed, origin)
SELECT DISTINCT ON (s.placeholder) %(run_id)s, s.placeholder, s.sealed, s.origin FROM surestep.secrets s
WHERE s.placeholder = ANY (%(placeholders)s::text[])
ORDER BY s.placeholder, s.created_at DESC
ON CONFLICT DO NOTHING;

-- name: forget_secrets
DELETE FROM surestep.secrets WHERE run_id = %s;

-- name: forget_lost_secrets
-- Of runs that are archived or erased, or never came to be because their process died before.
DELETE FROM surestep.secrets s
WHERE s.created_at < clock_timestamp() - interval '1 hour'
    AND NOT EXISTS (SELECT FROM surestep.runs r WHERE r.run_id = s.run_id);
