-- What somebody is to be told: each row is written by the statement that makes it true. A row that is not `ended` is due
-- at `next_at`; whoever delivers it moves that on first, so that it is tried again where he dies.
CREATE TABLE surestep.outbox (
    event_id     text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    kind         text NOT NULL CHECK (kind IN (
        'approval_requested', 'approval_escalated', 'approval_expired', 'outcome_unknown', 'run_failed', 'run_limited',
        'run_stuck'
    )),
    run_id       text NOT NULL REFERENCES surestep.runs ON DELETE CASCADE,
    approval_id  text,
    code         text,
    message      text,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts     integer NOT NULL DEFAULT 0,
    next_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_error   text,
    ended        text CHECK (ended IN ('delivered', 'outdated', 'given_up')),
    ended_at     timestamptz
);
CREATE INDEX outbox_due ON surestep.outbox (next_at) WHERE ended IS NULL;
CREATE INDEX outbox_by_run ON surestep.outbox (run_id);

ALTER TABLE surestep.approvals ADD COLUMN escalated_at timestamptz;
CREATE INDEX approvals_by_expiry ON surestep.approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_to_escalate ON surestep.approvals (approval_id)
    WHERE status = 'pending' AND escalated_at IS NULL AND (request -> 'escalates_at') IS NOT NULL;

CREATE FUNCTION surestep.tell_of_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO surestep.outbox (kind, run_id, approval_id, code)
    VALUES (
        CASE
            WHEN NEW.status = 'expired' THEN 'approval_expired'
            WHEN TG_OP = 'UPDATE' AND NEW.status = OLD.status THEN 'approval_escalated'
            WHEN NEW.request ->> 'kind' = 'unknown_outcome' THEN 'outcome_unknown'
            ELSE 'approval_requested'
        END,
        NEW.run_id, NEW.approval_id,
        CASE
            WHEN NEW.status = 'expired' THEN 'APPROVAL_EXPIRED'
            WHEN NEW.request ->> 'kind' = 'unknown_outcome' THEN 'UNKNOWN_OUTCOME'
        END
    );
    RETURN NULL;
END $$;

CREATE TRIGGER asked_is_told AFTER INSERT ON surestep.approvals
    FOR EACH ROW WHEN (NEW.status = 'pending') EXECUTE FUNCTION surestep.tell_of_approval();
CREATE TRIGGER asked_again_is_told AFTER UPDATE ON surestep.approvals
    FOR EACH ROW WHEN (
        (NEW.status IS DISTINCT FROM OLD.status AND NEW.status IN ('pending', 'expired'))
        OR (NEW.status = 'pending' AND NEW.escalated_at IS DISTINCT FROM OLD.escalated_at)
    ) EXECUTE FUNCTION surestep.tell_of_approval();

CREATE FUNCTION surestep.tell_of_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO surestep.outbox (kind, run_id, code, message)
    VALUES (
        'run_' || NEW.status, NEW.run_id, NEW.summary -> 'failure' ->> 'code', NEW.summary -> 'failure' ->> 'message'
    );
    RETURN NULL;
END $$;

CREATE TRIGGER failure_is_told AFTER UPDATE ON surestep.runs
    FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status AND NEW.status IN ('failed', 'limited'))
    EXECUTE FUNCTION surestep.tell_of_run();

-- How often a run that nobody drove was taken up by a sweeper without getting anywhere, and when the next may try.
CREATE TABLE surestep.resumptions (
    run_id      text PRIMARY KEY REFERENCES surestep.runs ON DELETE CASCADE,
    attempts    integer NOT NULL,
    next_at     timestamptz NOT NULL,
    last_error  text
);

-- Runs that may go on are few among many that have ended.
CREATE INDEX runs_open ON surestep.runs (created_at) WHERE status IN ('running', 'paused', 'limited');
