-- What people have said to a run that is going on. Once it has taken it, that stands in its journal; the row stays, so
-- that the same sending is not taken twice.
CREATE TABLE surestep.instructions (
    run_id          text NOT NULL REFERENCES surestep.runs ON DELETE CASCADE,
    instruction_id  text NOT NULL,
    message         text NOT NULL,
    said_by         jsonb NOT NULL,
    sent_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    taken_at        timestamptz,
    PRIMARY KEY (run_id, instruction_id)
);
