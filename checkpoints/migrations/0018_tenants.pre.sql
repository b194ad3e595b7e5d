-- A thread belongs to one tenant from its first run on, also when that run is archived or erased.

CREATE FUNCTION surestep.run_in_the_way(thread text, of_tenant text) RETURNS text
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(728313, hashtext(thread));
    RETURN coalesce(
        (
            SELECT run_id FROM surestep.runs
            WHERE thread_id = thread
                AND (status IN ('running', 'paused', 'limited') OR tenant <> of_tenant)
            LIMIT 1
        ),
        (
            SELECT run_id FROM surestep.tombstones
            WHERE thread_sha256 = encode(sha256(convert_to(thread, 'UTF8')), 'hex') AND tenant <> of_tenant
            LIMIT 1
        )
    );
END
$$;
