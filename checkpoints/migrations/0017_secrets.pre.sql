-- Secrets of runs by what stands for them everywhere else, encrypted with a key that is not in the database. `origin` is
-- the toolkit whose tool has given a secret; empty: a person has. A run's first secrets are stored before the run is.
CREATE TABLE surestep.secrets (
    run_id text NOT NULL,
    placeholder text NOT NULL,
    sealed bytea NOT NULL,
    origin text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, placeholder)
);
CREATE INDEX secrets_by_placeholder ON surestep.secrets (placeholder);
