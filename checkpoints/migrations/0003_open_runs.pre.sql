-- One open run per thread: who begins one asks first, one after the other.

-- The run of this thread that has not ended, other than by a request's own repetition. The lock is held until the caller's
-- statement commits, and the look comes after it, with a view of its own: two that begin at once do not miss each other.
CREATE FUNCTION surestep.open_run(thread text) RETURNS text
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(728313, hashtext(thread));
    RETURN (
        SELECT run_id FROM surestep.runs
        WHERE thread_id = thread AND status IN ('running', 'paused', 'limited') LIMIT 1
    );
END
$$;
