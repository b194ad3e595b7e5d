-- The first schema: runs, leases, journal, artifacts, approvals and what tools share between workers.
CREATE SCHEMA IF NOT EXISTS surestep;

CREATE TABLE surestep.runs (
    run_id        text PRIMARY KEY,
    thread_id     text NOT NULL,
    tenant        text NOT NULL DEFAULT '',
    request_id    text NOT NULL,
    goal          text NOT NULL,
    input         jsonb NOT NULL,
    input_sha256  text NOT NULL,
    status        text NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'paused', 'done', 'failed', 'cancelled', 'limited')),
    summary       jsonb NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at      timestamptz,
    UNIQUE (tenant, request_id)
);
CREATE INDEX runs_by_thread ON surestep.runs (thread_id, created_at);
CREATE INDEX runs_by_age ON surestep.runs (created_at);

-- One row per run for its whole life: the fence only ever grows; owner NULL means nobody drives the run.
CREATE TABLE surestep.leases (
    run_id            text PRIMARY KEY REFERENCES surestep.runs ON DELETE CASCADE,
    fence             bigint NOT NULL DEFAULT 0,
    owner             text,
    backend_pid       integer,
    backend_start     timestamptz,
    expires_at        timestamptz,
    cancel_requested  boolean NOT NULL DEFAULT false
);

CREATE TABLE surestep.journal (
    run_id   text NOT NULL REFERENCES surestep.runs ON DELETE CASCADE,
    fence    bigint NOT NULL,
    n        bigint NOT NULL,
    kind     text NOT NULL,
    step_id  text,
    attempt  integer NOT NULL DEFAULT 0,
    body     jsonb NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, fence, n)
);

-- Exactly one of body (small) and location (a file) is set.
CREATE TABLE surestep.artifacts (
    run_id      text NOT NULL REFERENCES surestep.runs ON DELETE CASCADE,
    output_ref  text NOT NULL,
    sha256      text NOT NULL,
    size        bigint NOT NULL,
    media_type  text NOT NULL,
    body        bytea,
    location    text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, output_ref),
    CHECK ((body IS NULL) <> (location IS NULL))
);

CREATE TABLE surestep.approvals (
    approval_id  text PRIMARY KEY,
    run_id       text NOT NULL REFERENCES surestep.runs ON DELETE CASCADE,
    thread_id    text NOT NULL,
    step_id      text NOT NULL,
    args_sha256  text NOT NULL,
    request      jsonb NOT NULL,
    status       text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'approved', 'rejected', 'edited', 'answered', 'expired', 'withdrawn')),
    decision     jsonb,
    decided_by   text,
    decided_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz
);
CREATE INDEX approvals_by_run ON surestep.approvals (run_id);
CREATE INDEX approvals_pending ON surestep.approvals (thread_id) WHERE status = 'pending';

CREATE TABLE surestep.tool_settings (
    tool        text PRIMARY KEY,
    settings    jsonb NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by  text NOT NULL
);

CREATE TABLE surestep.tool_breakers (
    tool        text PRIMARY KEY,
    state       jsonb NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE surestep.tool_cache (
    key         text PRIMARY KEY,
    tool        text NOT NULL,
    value       jsonb NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL
);

-- Scripts that a toolkit brought along and that have been run, by content.
CREATE TABLE surestep.toolkit_schemas (
    toolkit     text NOT NULL,
    sha256      text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (toolkit, sha256)
);

CREATE TABLE surestep.migrations (
    name        text PRIMARY KEY,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
