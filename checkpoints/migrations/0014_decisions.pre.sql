-- What each person has said to a request: a row per word, never changed. The request's own row counts them, for only one
-- row can be compared and set: `voters` are those who have agreed since it was asked last, `asking` numbers the askings.
ALTER TABLE surestep.approvals
    ADD COLUMN voters text[] NOT NULL DEFAULT '{}',
    ADD COLUMN asking integer NOT NULL DEFAULT 1;

CREATE TABLE surestep.decisions (
    decision_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    approval_id  text NOT NULL REFERENCES surestep.approvals ON DELETE CASCADE,
    asking       integer NOT NULL,
    decided_by   text NOT NULL,
    roles        text[] NOT NULL,
    tenant       text NOT NULL,
    via          text NOT NULL,
    args_sha256  text NOT NULL,
    decision     jsonb NOT NULL,
    decided_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX decisions_by_approval ON surestep.decisions (approval_id, asking);

-- A word goes only with its request, when a run is archived or erased.
CREATE FUNCTION surestep.keep_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT FROM surestep.approvals WHERE approval_id = OLD.approval_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% of %: what people have decided stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER decisions_stay BEFORE UPDATE OR DELETE ON surestep.decisions
FOR EACH ROW EXECUTE FUNCTION surestep.keep_decision();

CREATE FUNCTION surestep.keep_answer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'approval % is % and stays so', OLD.approval_id, OLD.status
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER answer_stays BEFORE UPDATE ON surestep.approvals
FOR EACH ROW WHEN (OLD.status NOT IN ('pending', 'withdrawn')) EXECUTE FUNCTION surestep.keep_answer();

-- A request as people are shown it: one that nobody answered in time is expired, whether or not that is written down.
CREATE VIEW surestep.answered_approvals AS
SELECT a.approval_id, a.run_id, a.thread_id, r.tenant, a.request, a.created_at,
    CASE WHEN a.status = 'pending' AND a.expires_at <= clock_timestamp() THEN 'expired' ELSE a.status END AS status,
    a.decision, a.decided_by, a.decided_at, coalesce(v.votes, '[]') AS votes
FROM surestep.approvals a JOIN surestep.runs r USING (run_id) LEFT JOIN LATERAL (
    SELECT jsonb_agg(
        jsonb_build_object(
            'by', jsonb_build_object('name', d.decided_by, 'roles', to_jsonb(d.roles), 'tenant', d.tenant),
            'decision', d.decision, 'via', d.via, 'at', d.decided_at
        ) ORDER BY d.decision_id
    ) AS votes
    FROM surestep.decisions d WHERE d.approval_id = a.approval_id AND d.asking = a.asking
) v ON true;
