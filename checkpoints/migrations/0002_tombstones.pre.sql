-- What stays of runs that were archived or erased, and which files nothing refers to any more.

-- One row per archived or erased run. Before `archived_at` and `erased_at` are set an archive of it has only been begun.
-- An erased run keeps hashes alone: `request_id`, `thread_id` and `input_sha256` are NULL then, and so is its place.
CREATE TABLE surestep.tombstones (
    run_id          text PRIMARY KEY,
    tenant          text NOT NULL,
    request_sha256  text NOT NULL,
    thread_sha256   text NOT NULL,
    request_id      text,
    thread_id       text,
    input_sha256    text,
    status          text NOT NULL,
    effects         jsonb NOT NULL DEFAULT '{}',
    place           text,
    folder          text,
    created_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    archived_at     timestamptz,
    erased_at       timestamptz,
    UNIQUE (tenant, request_sha256)
);
CREATE INDEX tombstones_by_thread ON surestep.tombstones (thread_sha256, created_at);

-- Files of the artifact store whose last known run is gone: deleted when nothing refers to them, and then forgotten.
CREATE TABLE surestep.loose_files (
    location  text PRIMARY KEY,
    since     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX artifacts_by_location ON surestep.artifacts (location) WHERE location IS NOT NULL;
CREATE INDEX runs_by_end ON surestep.runs (ended_at) WHERE ended_at IS NOT NULL;

-- A request that was archived or erased begins no second run. Each statement of a volatile function sees what was
-- committed before it, so what an archive commits while an insert waits for its lock is seen here, where the insert's own
-- snapshot would miss it. The locks are those that `lock_for_burial` takes exclusively, in the same order.
CREATE FUNCTION surestep.heed_tombstones() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    request text := encode(sha256(convert_to(NEW.request_id, 'UTF8')), 'hex');
BEGIN
    PERFORM pg_advisory_xact_lock_shared(728311, hashtext(NEW.tenant || request));
    PERFORM pg_advisory_xact_lock_shared(728312, hashtext(NEW.thread_id));
    IF EXISTS (
        SELECT FROM surestep.tombstones t
        WHERE t.tenant = NEW.tenant AND t.request_sha256 = request
            AND (t.archived_at IS NOT NULL OR t.erased_at IS NOT NULL)
    ) THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER heed_tombstones BEFORE INSERT ON surestep.runs
    FOR EACH ROW EXECUTE FUNCTION surestep.heed_tombstones();
